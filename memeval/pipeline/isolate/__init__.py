"""Calls a system so that its faults affect only its own questions."""
