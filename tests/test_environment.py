"""Variables of the process: those that switch telemetry off, and those set for a while."""

from __future__ import annotations

import os

import pytest

from memeval.process.environment import ENVIRONMENT, environment, set_environment


def test_telemetry_of_libraries_is_off_unless_the_user_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {"ORT_DISABLE_TELEMETRY": "0"})
    set_environment()
    assert os.environ == {**ENVIRONMENT, "ORT_DISABLE_TELEMETRY": "0"}
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert os.environ["MEM0_TELEMETRY"] == os.environ["ANONYMIZED_TELEMETRY"] == "False"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_variables_are_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"SET": "before", "OTHER": "kept"}
    monkeypatch.setattr(os, "environ", dict(before))
    with pytest.raises(ValueError, match="broken"), environment({"SET": "now", "NEW": "now"}):
        assert os.environ == {**before, "SET": "now", "NEW": "now"}
        raise ValueError("broken")

    assert os.environ == before
