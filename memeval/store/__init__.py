"""What is stored: what lies in a home by kind, size and age, and what may be removed."""
