"""What a plan would cost, before any of it is run."""
