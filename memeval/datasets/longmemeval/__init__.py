"""LongMemEval."""
