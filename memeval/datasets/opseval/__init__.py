"""OpsEval."""
