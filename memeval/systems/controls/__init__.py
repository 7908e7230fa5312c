"""Controls and bounds: nothing, everything, and exactly what is needed."""
