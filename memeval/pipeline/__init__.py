"""A cell, from a resolved configuration to rows and figures."""
