"""Progress on the terminal, and text as wide as the terminal is."""
