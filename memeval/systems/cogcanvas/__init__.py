"""CogCanvas and its ablations."""
