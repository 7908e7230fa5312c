"""Calls a system so that nothing it does, or returns, spoils more than its own questions."""
