"""Published figures as data, each with its protocol, and their comparability with a run."""
