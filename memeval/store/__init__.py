"""Contents of a home by kind, size and age, and the parts that may be removed."""
