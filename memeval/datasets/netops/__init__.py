"""What the NetOps data sets share."""
