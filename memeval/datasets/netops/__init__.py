"""What the data sets of network operations share."""
