"""Calls a system so that nothing that it does or returns spoils more than its own questions."""
