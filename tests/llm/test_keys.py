"""Keys come from the environment, and one that no header can carry is refused unseen."""

from __future__ import annotations

import pytest

from memeval.errors import UserError
from memeval.llm.keys import NO_KEY, key_for, key_of, value_of
from memeval.text import redaction
from memeval.text.secret_shapes import REDACTED

UNSET = "A_VARIABLE_THAT_IS_NOT_SET"


@pytest.mark.parametrize("value", ["clé-of-some-service", "key-of-some-service\nexport B=1"])
def test_key_with_characters_that_a_header_cannot_carry_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(UserError, match="SOME_KEY contains characters") as raised:
        value_of("SOME_KEY", "llm")

    assert value not in str(raised.value.args)


def test_key_is_needed_unless_a_header_or_this_machine_replaces_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_KEY", " key-of-some-service\n")
    assert key_for("SOME_KEY", "https://a.test", "llm", {"api-key": "x"}) == "key-of-some-service"
    assert key_for(UNSET, "https://a.test", "llm", {"api-key": "x"}) == NO_KEY
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert key_of(UNSET, f"http://{host}:8000/v1", "llm") == NO_KEY
    with pytest.raises(UserError, match=f"llm needs a key for https://a.test: .* {UNSET} is not"):
        key_for(UNSET, "https://a.test", "llm", None)


def test_key_in_a_variable_of_any_name_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_forms", {})
    monkeypatch.setenv("FOR_THE_GATEWAY", "key-of-some-service")
    value_of("FOR_THE_GATEWAY", "llm")
    assert redaction.redacted("refused: key-of-some-service") == f"refused: {REDACTED}"
