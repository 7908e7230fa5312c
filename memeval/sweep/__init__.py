"""A sweep as one piece of work: its cells are planned, scheduled and computed together."""
