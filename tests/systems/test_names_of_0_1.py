"""Classes that were written for 0.1 still work, and are told once what has a new name."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Any

import pytest

from memeval.pipeline.declared import Declared
from memeval.systems.base import SystemContext, SystemSettings
from memeval.systems.controls.no_memory import NoMemory
from memeval.systems.retrieval.bm25 import Bm25


def test_the_module_of_the_contract_can_be_imported() -> None:
    sys.modules.pop("memeval.systems.contract", None)
    with pytest.warns(DeprecationWarning, match=r"is now memeval\.systems\.base"):
        contract = importlib.import_module("memeval.systems.contract")
    assert contract.Parts is SystemContext


def test_old_method_names_are_honoured_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Old(NoMemory):
        @classmethod
        def thinks_at_ingest(cls, settings: Any) -> bool:
            return True

        @classmethod
        def ingest_wordings(cls, settings: Any) -> tuple[str, ...]:
            return ("summarise",)

    with caplog.at_level(logging.WARNING):
        declared = [Declared(Old, SystemSettings()) for _ in range(2)]
    assert [one.uses_llm_at_ingest for one in declared] == [True, True]
    assert declared[0].ingest_templates == ("summarise",)
    (warning,) = caplog.messages
    assert "Old uses names of memeval 0.1: thinks_at_ingest is now uses_llm_at_ingest" in warning
    assert "ingest_wordings is now ingest_templates" in warning


def test_a_subclass_of_an_old_class_and_a_new_name_win(caplog: pytest.LogCaptureFixture) -> None:
    class Old(Bm25):
        @classmethod
        def thinks_at_ingest(cls, settings: Any) -> bool:
            return True

    class Child(Old):
        pass

    class Both(Old):
        @classmethod
        def uses_llm_at_ingest(cls, settings: Any) -> bool:
            return False

    assert Child.uses_llm_at_ingest(None) is True
    assert Both.uses_llm_at_ingest(None) is False
    with caplog.at_level(logging.WARNING):
        Declared(Bm25, Bm25.settings_type())
    assert caplog.messages == []
