"""What is stored: what a home holds by kind, size and age, and what may be removed."""
