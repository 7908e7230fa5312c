"""Alert storms."""
