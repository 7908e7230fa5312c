"""The demonstration sets: files that ship with memeval, read by the adapters of the benchmarks."""
