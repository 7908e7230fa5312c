"""A user's own data: a JSON or JSON Lines file of cases, sessions, turns and questions."""
