from pathlib import Path

import pytest
from conftest_pipeline import memeval  # noqa: F401 - a fixture for all tests here


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, and the key of an endpoint."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    return tmp_path
