"""Generated conversations."""
