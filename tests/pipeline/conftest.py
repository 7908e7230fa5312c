from conftest_pipeline import memeval  # noqa: F401 - a fixture for all tests here
