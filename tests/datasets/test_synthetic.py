"""The synthetic set: golds follow from the shown turns, the size is as requested, and every process
generates the same set.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks, line
from memeval.datasets.locate import build
from memeval.datasets.synthetic.file import positions
from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase, EvalQuestion, Turn

NOWHERE = Path("/nowhere")
AGO = {"today": 0, "yesterday": 1, "two days ago": 2, "three days ago": 3, "a week ago": 7}


def cases(**given: Any) -> list[EvalCase]:
    return list(build("synthetic", NOWHERE, **given).cases())


class Reader:
    """Answers questions by searching every turn: no index, no plan, and nothing from the generator
    except its language.
    """

    def __init__(self, case: EvalCase) -> None:
        self.case = case
        self.turns = [turn for session in case.sessions for turn in session.turns]

    def about(self, owner: str, pattern: str) -> list[tuple[Turn, re.Match[str]]]:
        """Sentences that state something about a person, with what the pattern captures."""
        found = []
        for turn in self.turns:
            for sentence in re.split(r"(?<=[.!?]) ", turn.text):
                spoken = [re.escape(owner), *(["I"] if turn.speaker == owner else [])]
                matches = (re.fullmatch(pattern.format(who=who), sentence) for who in spoken)
                found += [(turn, match) for match in matches if match]
        return found

    def attribute(self, owner: str, attribute: str) -> list[tuple[Turn, str]]:
        stated = []
        for turn in self.turns:
            whose = f"(?:{owner}'s|[Mm]y)" if turn.speaker == owner else f"{owner}'s"
            stated += [
                (turn, match)
                for match in re.findall(
                    rf"{whose} {attribute} (?:is in|is) (\w+(?: \w+)?)\.",
                    turn.text.replace(" now.", "."),
                )
            ]
        return stated

    def gold(self, question: EvalQuestion) -> tuple[list[str], set[str]]:
        """The answers to a question and the turns that give them; empty if no turn does."""
        text = question.text
        if match := re.fullmatch(
            r"(?:According to (\w+), w|W)\w+ is (\w+)'s ([\w ]+?)( now)?\?( The last "
            r"correction counts\.)?",
            text,
        ):
            source, owner, attribute, *_ = match.groups()
            stated = [
                (turn, value)
                for turn, value in self.attribute(owner, attribute)
                if source in (None, turn.speaker)
            ]
            assert source or match[4] or match[5] or len(stated) <= 1, f"{text}: stated twice"
            return ([stated[-1][1]], {stated[-1][0].turn_id}) if stated else ([], set())
        if match := re.fullmatch(
            r"How many pieces has (\w+) bought for the (\w+) collection\?", text
        ):
            stated = [
                (turn, piece[1])
                for turn, piece in self.about(
                    match[1], rf"{{who}} bought a (\w+) piece for the {match[2]} collection\."
                )
            ]
            assert len({piece for _, piece in stated}) == len(stated)
            return [str(len(stated))], {turn.turn_id for turn, _ in stated}
        if match := re.fullmatch(r"How many crowns has (\w+) spent on the ([\w ]+) in all\?", text):
            spent = self.about(match[1], rf"{{who}} spent (\d+) crowns on the {match[2]}\.")
            return [str(sum(int(amount[1]) for _, amount in spent))], {
                turn.turn_id for turn, _ in spent
            }
        if match := re.fullmatch(r"Who ran more miles at the ([\w ]+), (\w+) or (\w+)\?", text):
            runs = {
                who: self.about(who, rf"{{who}} ran (\d+) miles at the {match[1]}\.")
                for who in match.groups()[1:]
            }
            best = max(runs, key=lambda who: int(runs[who][0][1][1]))
            return [best], {turn.turn_id for stated in runs.values() for turn, _ in stated}
        if match := re.fullmatch(r"Which happened first: (\w+) (.*) or (\w+) (.*)\?", text):
            one, other = (
                self.happened(match[1], match[2].split(" ", 1)[1]),
                self.happened(match[3], match[4].split(" ", 1)[1]),
            )
            first = match[1] if one[0][1] < other[0][1] else match[3]
            assert one[0][1] != other[0][1]
            return [first], {one[0][0].turn_id, other[0][0].turn_id}
        match = re.fullmatch(r"When did (\w+) \w+ (.*)\?", text)
        assert match, f"no reading of: {text}"
        events = self.happened(match[1], match[2])
        assert len(events) <= 1
        return ([f"{day:%Y-%m-%d}" for _, day in events], {turn.turn_id for turn, _ in events})

    def happened(self, who: str, what: str) -> list[tuple[Turn, datetime]]:
        """When a person did something, by the sessions' dates."""
        found = self.about(who, rf"{{who}} \w+ {re.escape(what)} ({'|'.join(AGO)})\.")
        return [
            (turn, turn.time.replace(hour=0, minute=0) - timedelta(days=AGO[match[1]]))
            for turn, match in found
            if turn.time
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"tokens": 600},
        {"tokens": 3_000, "seed": 7},
        {"tokens": 40_000, "questions_per_case": 90, "distractors": 0.4},
    ],
)
def test_golds_and_evidence_follow_from_the_shown_turns(given: dict[str, Any]) -> None:
    for case in cases(n_cases=3, **given):
        reader = Reader(case)
        for question in case.questions:
            gold, evidence = reader.gold(question)
            if not question.answerable:
                assert gold == [] and question.gold == (), f"{question.text} has an answer: {gold}"
                continue
            assert set(gold) <= set(question.gold), f"{question.text}: {gold}, not {question.gold}"
            assert evidence == set(question.evidence), question.text


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [10, 11, 14, 50, 100, 1_000, 20_000, 200_000])
def test_haystack_has_the_requested_number_of_tokens(tokens: int) -> None:
    for case in cases(tokens=tokens, n_cases=2):
        found = sum(count_tokens(unit.content) for unit in chunks(case, GranularityConfig("turn")))
        assert tokens - 3 <= found <= tokens
        assert case.questions and all(
            turn.text.strip() for session in case.sessions for turn in session.turns
        )


@given(
    tokens=st.integers(10, 3_000),
    seed=st.integers(0, 10**6),
    per_session=st.integers(1, 50),
    questions=st.integers(1, 200),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_size_gives_a_valid_case(
    tokens: int, seed: int, per_session: int, questions: int
) -> None:
    (case,) = cases(
        tokens=tokens,
        seed=seed,
        turns_per_session=per_session,
        questions_per_case=questions,
        n_cases=1,
    )
    turns = [turn for session in case.sessions for turn in session.turns]
    assert tokens - 3 <= sum(map(count_tokens, map(line, turns))) <= tokens
    assert all(len(session.turns) <= per_session for session in case.sessions)
    assert 1 <= len(case.questions) <= questions
    assert len({question.text for question in case.questions}) == len(case.questions)


def test_ten_tokens_hold_one_fact_and_one_question() -> None:
    (case,) = cases(tokens=10, n_cases=1)
    assert [question.category for question in case.questions] == ["IE"]
    assert [len(session.turns) for session in case.sessions] == [1]


def test_depths_are_balanced_and_correct() -> None:
    (case,) = cases(n_cases=1)
    depths = Counter(question.facets["depth"] for question in case.questions if question.answerable)
    assert depths == dict.fromkeys(("0-20%", "20-40%", "40-60%", "60-80%", "80-100%"), 5)
    starts = positions(case.sessions)
    total = starts[""]
    for question in case.questions:
        if question.answerable:
            low, high = map(int, question.facets["depth"].rstrip("%").split("-"))
            assert low <= 100 * max(starts[turn] for turn in question.evidence) / total < high
        else:
            assert question.facets == {}


def test_abilities_are_balanced_and_occur_at_every_depth() -> None:
    found = Counter(question.category for case in cases() for question in case.questions)
    assert found == dict.fromkeys(("IE", "MR", "TR", "KU", "CR", "ABS"), 20)
    (case,) = cases(n_cases=1)
    by_depth = {
        (question.facets["depth"], question.category)
        for question in case.questions
        if question.answerable
    }
    assert len(by_depth) == 25


def test_cases_do_not_depend_on_their_number() -> None:
    assert cases(n_cases=3, tokens=500)[:2] == cases(n_cases=2, tokens=500)
    assert cases(n_cases=1, tokens=500) != cases(n_cases=1, tokens=500, seed=1)


@pytest.mark.slow
def test_every_process_generates_the_same_cases() -> None:
    code = (
        "from pathlib import Path; from memeval.datasets.locate import build; d = "
        "build('synthetic', Path('x'), tokens=2000, n_cases=1);"
        "print(d.open().sha256); print(repr(list(d.cases())))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert outputs == {
        f"{build('synthetic', NOWHERE, tokens=2000, n_cases=1).open().sha256}\n"
        f"{cases(tokens=2000, n_cases=1)!r}\n"
    }


def test_digest_depends_on_what_is_generated_and_not_on_what_is_asked() -> None:
    digest = build("synthetic", NOWHERE).open().sha256
    assert (
        build("synthetic", NOWHERE, limit_questions=3, categories=("IE",)).open().sha256 == digest
    )
    others = [
        {"tokens": 999},
        {"seed": 1},
        {"n_cases": 5},
        {"questions_per_case": 29},
        {"turns_per_session": 9},
        {"distractors": 0.2},
    ]
    assert (
        len({digest, *(build("synthetic", NOWHERE, **other).open().sha256 for other in others)})
        == 7
    )


def test_distractors_state_similar_facts_about_other_people() -> None:
    def count_facts(share: float) -> int:
        (case,) = cases(tokens=20_000, n_cases=1, distractors=share)
        return sum(
            bool(re.search(r"'s [\w ]+ is (in )?\w+", turn.text))
            for session in case.sessions
            for turn in session.turns
        )

    assert count_facts(0.0) < 60
    assert count_facts(0.5) > 100


def test_too_small_a_haystack_is_noted() -> None:
    dataset = build("synthetic", NOWHERE, tokens=100, n_cases=1)
    assert dataset.notes() == ()
    list(dataset.read())
    assert dataset.notes() == (
        "haystacks too small for all of their questions: 1 (synthetic-1 3 of 30)",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": 9}, "dataset.tokens must be at least 10, not 9"),
        ({"tokens": 10_000_001}, "not 10,000,001"),
        ({"tokens": 10**400}, "dataset.tokens must be at most 10,000,000, not 10,000,"),
        ({"n_cases": 0}, "dataset.n_cases must be at least 1"),
        ({"questions_per_case": 201}, "dataset.questions_per_case must be at most 200, not 201"),
        ({"turns_per_session": 0}, "dataset.turns_per_session must be at least 1"),
        ({"distractors": 0.6}, "dataset.distractors must be at most 0.5, not 0.6"),
        (
            {"path": "x.json", "tokens": 50},
            "dataset.tokens sets what is generated, but dataset.path=x.json reads a file",
        ),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        build("synthetic", NOWHERE, **given)
