"""For authors of systems and data sets, and for our own tests: conformance suites, a scripted model, a scripted HTTP endpoint."""
