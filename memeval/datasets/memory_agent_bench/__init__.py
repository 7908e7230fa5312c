"""MemoryAgentBench."""
