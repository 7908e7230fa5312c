"""LoCoMo-MC10: LoCoMo's questions with ten choices each."""
