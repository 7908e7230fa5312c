"""Systems of other projects."""
