"""Answers every question about incidents from the shown turns alone, by brute force and
independently of the adapter.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memeval.records import EvalCase, EvalQuestion

OPENING = (
    r"Components? (?P<who>[\w, ]+?) had fault (?P<fault>\w+)\. It began at (?P<time>.{16})\.",
    r"Fault (?P<fault>\w+) was found on components? (?P<who>[\w, ]+?)\. It began at "
    r"(?P<time>.{16})\.",
    r"Components? (?P<who>[\w, ]+?) was hit by fault (?P<fault>\w+)\. The incident began "
    r"at (?P<time>.{16})\.",
    r"Components? (?P<who>[\w, ]+?) failed with fault (?P<fault>\w+)\. That was at "
    r"(?P<time>.{16})\.",
    r"Components? (?P<who>[\w, ]+?) had an incident\. It began at (?P<time>.{16})\.",
    r"Components? (?P<who>[\w, ]+?) failed\. That was at (?P<time>.{16})\.",
    r"An incident hit components? (?P<who>[\w, ]+?)\. It began at (?P<time>.{16})\.",
)
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


@dataclass
class Read:
    turn: str
    who: list[str]
    fault: str
    at: str
    when: datetime
    level: str
    over: str = ""
    lasted: str = ""


def read(case: EvalCase) -> list[Read]:
    rows = []
    for session in case.sessions:
        first = session.turns[0]
        found = next(
            match
            for pattern in OPENING
            if (match := re.fullmatch(pattern + r"(?: Level: (?P<level>\w+)\.)?", first.text))
        )
        parts = found.groupdict()
        who = re.split(r", | and ", parts["who"])
        row = Read(
            turn=first.turn_id,
            who=who,
            fault=parts.get("fault") or "",
            at=parts["time"],
            when=datetime.fromisoformat(parts["time"]),
            level=parts["level"] or "",
        )
        assert (
            first.time == session.started_at
            and first.time
            and first.time.replace(second=0) == row.when
        )
        for second in session.turns[1:]:
            assert row.at in second.text and all(name in second.text for name in who)
            row.over, row.lasted = second.turn_id, re.search(r" lasted (.+)\.$", second.text)[1]  # type: ignore[index]
        rows.append(row)
    return rows


def names(text: str) -> list[str]:
    return re.split(r", | and ", text)


def numbers(answer: int) -> str:
    return WORDS[answer] if answer <= 12 else str(answer)


def solve(  # noqa: PLR0911, PLR0912 - a template a branch
    case: EvalCase, question: EvalQuestion, later: dict[str, Any]
) -> tuple[str | None, set[str]]:
    """The answer, or None if the turns don't give it, and the turns that give it.

    `later` has root causes by (minute, fault, level).
    """
    rows, text = read(case), question.text

    def where(**wanted: Any) -> list[Read]:
        return [
            r
            for r in rows
            if all(
                (value in r.who) if key == "name" else getattr(r, key) == value
                for key, value in wanted.items()
            )
        ]

    def one(found: list[Read], what: Any) -> tuple[str | None, set[str]]:
        return (what(found[-1]), {found[-1].turn}) if found else (None, set())

    def who(row: Read) -> str:
        return ", ".join(row.who)

    def match(pattern: str) -> re.Match[str] | None:
        return re.fullmatch(pattern, text)

    if m := match(r"Which fault did components? ([\w, ]+) have at (.{16})\?"):
        (row,) = [r for r in rows if r.who == names(m[1]) and r.at == m[2]]
        return row.fault, {row.turn}
    if m := match(r"Which component (?:had fault (\w+)|failed) at (.{16})\?"):
        (row,) = [r for r in rows if r.at == m[2]]
        assert row.fault == (m[1] or "")
        return who(row), {row.turn}
    if m := match(
        r"How long did the incident of components? ([\w, ]+) last that began at (.{16})\?"
    ):
        (row,) = [r for r in rows if r.who == names(m[1]) and r.at == m[2]]
        return row.lasted, {row.over}
    if m := match(r"How many incidents did component (\w+) have\?"):
        found = where(name=m[1])
        return numbers(len(found)), {r.turn for r in found}
    if m := match(r"How many times did component (\w+) have fault (\w+)\?"):
        found = where(name=m[1], fault=m[2])
        return numbers(len(found)), {r.turn for r in found}
    if m := match(r"Which components had fault (\w+)\?"):
        found = where(fault=m[1])
        return ", ".join(dict.fromkeys(name for r in found for name in r.who)), {
            r.turn for r in found
        }
    if m := match(r"Which faults did component (\w+) have\?"):
        found = where(name=m[1])
        return ", ".join(dict.fromkeys(r.fault for r in found if r.fault)), {r.turn for r in found}
    if m := match(r"Which fault did component (\w+) have most often\?"):
        found = where(name=m[1])
        counts = Counter(r.fault for r in found if r.fault)
        (best,) = [fault for fault, count in counts.items() if count == max(counts.values())]
        return best, {r.turn for r in found}
    if m := match(
        r"An incident with fault (\w+)(?: and level (\w+))? began at .{16}\. Which "
        r"component had the latest incident of .+ in the records\?"
    ):
        return one(where(fault=m[1], level=m[2] or ""), who)
    if m := match(
        r"Which components are the likeliest root causes of the .+?(?: with symptom "
        r"(\w+))?(?: at level (\w+))? that began at (.{16})\?"
    ):
        (causes,) = later[m[3], m[1] or "", m[2] or ""]
        known = [r for r in rows if set(r.who) & set(causes)]
        return ", ".join(causes), {r.turn for r in known if r.fault == (m[1] or "")} or {
            r.turn for r in known
        }
    if m := match(
        r"Which of the two had its first incident earlier: component (\w+) or component (\w+)\?"
    ):
        first = [where(name=name)[0] for name in m.groups()]
        return m[1] if first[0].when < first[1].when else m[2], {r.turn for r in first}
    if m := match(r"Which component was the first to have fault (\w+)\?"):
        row = where(fault=m[1])[0]
        return who(row), {row.turn}
    if m := match(
        r"Which component had the next incident after the one of components? ([\w, ]+) at (.{16})\?"
    ):
        (place,) = [n for n, r in enumerate(rows) if r.who == names(m[1]) and r.at == m[2]]
        return who(rows[place + 1]), {rows[place].turn, rows[place + 1].turn}
    if m := match(
        r"At what time of day did components? ([\w, ]+) (?:have fault (\w+)|fail) on (.{10})\?"
    ):
        (row,) = [
            r
            for r in rows
            if r.who == names(m[1]) and r.fault == (m[2] or "") and r.at.startswith(m[3])
        ]
        return row.at[11:], {row.turn}
    if m := match(
        r"How many days lie between the dates of the first and the latest incident of "
        r"component (\w+)\?"
    ):
        found = where(name=m[1])
        return numbers((found[-1].when.date() - found[0].when.date()).days), {
            found[0].turn,
            found[-1].turn,
        }
    if m := match(
        r"It is (.{10})\. By the records, how many days ago did component (\w+) last fail\?"
    ):
        last = where(name=m[2])[-1]
        return numbers(
            (datetime.fromisoformat(m[1]) - datetime.fromisoformat(last.at[:10])).days
        ), {last.turn}
    if m := match(r"Which fault did component (\w+) have most recently\?"):
        return one(where(name=m[1]), lambda row: row.fault)
    if m := match(r"Which component had fault (\w+) most recently\?"):
        return one(where(fault=m[1]), who)
    if m := match(r"At what time of day did the latest incident of component (\w+) begin\?"):
        return one(where(name=m[1]), lambda row: row.at[11:])
    if m := match(r"At what time of day did component (\w+) first have fault (\w+)\?"):
        assert where(name=m[1]) and where(fault=m[2])
        return one(where(name=m[1], fault=m[2]), lambda row: row.at[11:])
    if m := match(
        r"The records contradict each other on the fault of components? ([\w, ]+) at "
        r"(.{16})\. Which one does the record .+\?"
    ):
        found = [r for r in rows if r.who == names(m[1]) and r.at == m[2] and r.fault]
        assert len({r.fault for r in found}) > 1
        return found[-1].fault, {r.turn for r in found}
    raise AssertionError(f"no rule answers: {text}")
