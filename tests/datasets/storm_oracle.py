"""Answers every question about an alert storm from the shown turns alone, by brute force and
independently of the adapter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memeval.records import EvalCase, EvalQuestion

LINE = re.compile(
    r"Device (?P<device>\w+) had alert (?P<kind>\w+)\. Time: (?P<time>[\d-]{10} "
    r"[\d:.]{12})\.(?: Port: (?P<port>\w+)\.)? "
    r"Severity: (?P<severity>\w+)\. Message: (?P<message>.+?)\.(?: Trouble came from "
    r"(?P<via>\w+)\.)?"
)
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
ROOTS = {"power_failure", "linecard_failure", "software_crash", "overheating"}


@dataclass(frozen=True)
class Line:
    turn: str
    device: str
    kind: str
    time: str
    port: str
    severity: str
    via: str


def read(case: EvalCase) -> list[Line]:
    lines = []
    for turn in (
        turn for session in case.sessions for turn in session.turns if turn.speaker == "monitor"
    ):
        match = LINE.fullmatch(turn.text)
        assert match and turn.time, turn.text
        assert turn.time.isoformat(sep=" ", timespec="milliseconds") == match["time"]
        lines.append(
            Line(
                turn=turn.turn_id,
                device=match["device"],
                kind=match["kind"],
                time=match["time"],
                port=match["port"] or "",
                severity=match["severity"],
                via=match["via"] or "",
            )
        )
    return lines


def number(count: int) -> str:
    return WORDS[count] if count <= 12 else str(count)


def solve(  # noqa: PLR0911, PLR0912 - a template a branch
    lines: list[Line], question: EvalQuestion
) -> tuple[str | None, set[str]]:
    """The answer, or None if the turns don't give it, and the alert turns that give it."""
    text = question.text

    def match(pattern: str) -> re.Match[str] | None:
        return re.fullmatch(pattern, text)

    def firsts(found: list[Line]) -> list[Line]:
        return [
            one
            for n, one in enumerate(found)
            if not any(
                (one.device, one.kind, one.port) == (b.device, b.kind, b.port) for b in found[:n]
            )
        ]

    def of(device: str) -> list[Line]:
        return [one for one in lines if one.device == device]

    def turns(found: list[Line]) -> set[str]:
        return {one.turn for one in found} if len(found) <= 1000 else set()

    def about(kind: str, port: str | None, device: str) -> list[Line]:
        return [
            one for one in lines if (one.device, one.kind, one.port) == (device, kind, port or "")
        ]

    if m := match(r"Which device had an alert at (.{23})\?"):
        (one,) = [one for one in lines if one.time == m[1]]
        return one.device, {one.turn}
    if m := match(r"Which alert did device (\w+) have at (.{23})\?"):
        (one,) = [one for one in lines if one.time == m[2]]
        assert one.device == m[1]
        return one.kind, {one.turn}
    if match(r"How many distinct alerts were there in all\?"):
        found = list({(one.device, one.kind, one.port): one for one in reversed(lines)}.values())
        return number(len(found)), turns(found)
    if m := match(r"How many distinct alerts did device (\w+) have\?"):
        found = firsts(of(m[1]))
        return number(len(found)), turns(found)
    if m := match(r"How many alerts did device (\w+) have, duplicates included\?"):
        return number(len(of(m[1]))), turns(of(m[1]))
    if match(r"Which device(?: is the root cause|s are the root causes) of the storm\?"):
        found = firsts([one for one in lines if not one.via and not one.kind.startswith("link_")])
        return ", ".join(one.device for one in found), turns(found)
    if match(r"Which device was the first root cause\?"):
        found = firsts([one for one in lines if not one.via and not one.kind.startswith("link_")])
        return found[0].device, turns(found)
    if m := match(r"Which device is the root cause of the trouble that reached device (\w+)\?"):
        way = [m[1]]
        while sources := {one.via for one in of(way[-1]) if one.via}:
            (source,) = sources
            way.append(source)
        assert any(one.kind in ROOTS for one in of(way[-1]))
        first = [
            next(one for one in of(device) if not one.kind.startswith("link_")) for device in way
        ]
        assert [one.time for one in first] == sorted((one.time for one in first), reverse=True)
        return way[-1], turns(first)
    if m := match(r"How many times did device (\w+) have alert link_down\?"):
        found = [one for one in of(m[1]) if one.kind == "link_down"]
        return number(len(found)), turns(found)
    if match(r"Which device had the very first alert\?"):
        return lines[0].device, {lines[0].turn}
    if m := match(r"Which alert did device (\w+) have first\?"):
        return (of(m[1])[0].kind, {of(m[1])[0].turn}) if of(m[1]) else (None, set())
    if m := match(
        r"Which device had the alert right before the first alert (\w+)(?: on (\w+))? of "
        r"device (\w+)\?"
    ):
        place = lines.index(about(m[1], m[2], m[3])[0])
        return lines[place - 1].device, {lines[place - 1].turn, lines[place].turn}
    if m := match(r"Which of the two had its first alert earlier: device (\w+) or device (\w+)\?"):
        one, other = of(m[1])[0], of(m[2])[0]
        return min(one, other, key=lambda line: line.time).device, {one.turn, other.turn}
    if m := match(r"Which alert did the uplink of device (\w+) have most recently\?"):
        last = [one for one in of(m[1]) if one.port == "uplink"][-1]
        return last.kind, {last.turn}
    if m := match(r"Which alert did device (\w+) have most recently\?"):
        return (of(m[1])[-1].kind, {of(m[1])[-1].turn}) if of(m[1]) else (None, set())
    if m := match(r"Which device had alert (\w+) most recently\?"):
        last = [one for one in lines if one.kind == m[1]][-1]
        return last.device, {last.turn}
    if m := match(
        r"The lines on alert (\w+)(?: on (\w+))? of device (\w+) contradict each other\. "
        r"What is its severity by the latest line\?"
    ):
        found = about(m[1], m[2], m[3])
        assert len({one.severity for one in found}) > 1
        return found[-1].severity, turns(found)
    if m := match(r"What was the severity of the latest alert (\w+) of device (\w+)\?"):
        found = [one for one in of(m[2]) if one.kind == m[1]]
        assert of(m[2]) and any(one.kind == m[1] for one in lines)
        return (found[-1].severity, {found[-1].turn}) if found else (None, set())
    return solve_history(lines, text)


def solve_history(lines: list[Line], text: str) -> tuple[str | None, set[str]]:
    """Like `solve`, for questions over several storms: a storm is what happened on one day."""
    storms: dict[str, list[Line]] = {}
    for one in lines:
        if not one.kind.startswith("link_"):
            storms.setdefault(one.time[:10], []).append(one)
    latest = max(storms)

    def together(*wanted: tuple[str | None, str]) -> tuple[str | None, set[str]]:
        """The last day before the latest on which each device (None: any) had its alert, and the
        turns of these alerts.
        """
        for date in sorted(storms, reverse=True):
            hits = [
                next(
                    (x for x in storms[date] if x.kind == kind and device in (None, x.device)), None
                )
                for device, kind in wanted
            ]
            if date != latest and all(hits):
                return date, {hit.turn for hit in hits if hit}
        return None, set()

    def causes(date: str) -> list[Line]:
        found = {one.device: one for one in reversed(storms[date]) if one.kind in ROOTS}
        return sorted(found.values(), key=lambda one: one.time)

    if m := re.fullmatch(
        r"When were alerts (\w+) and (\w+) raised together before, in one storm earlier than "
        r"the latest\?",
        text,
    ):
        return together((None, m[1]), (None, m[2]))
    if m := re.fullmatch(
        r"When did device (\w+) have alerts (\w+) and (\w+) together before, in one storm "
        r"earlier than the latest\?",
        text,
    ):
        assert {m[2], m[3]} <= {one.kind for one in storms[latest] if one.device == m[1]}
        return together((m[1], m[2]), (m[1], m[3]))
    if m := re.fullmatch(
        r"When was device (\w+) a root cause before, in a storm earlier than the latest\?", text
    ):
        for date in sorted(storms, reverse=True)[1:]:
            if own := [one for one in causes(date) if one.device == m[1]]:
                return date, {own[0].turn}
        return None, set()
    if m := re.fullmatch(r"Which devices were the root causes of the storm of (.{10})\?", text):
        found = causes(m[1])
        assert all(not one.via for one in found)
        return ", ".join(one.device for one in found), {one.turn for one in found}
    if m := re.fullmatch(r"In how many storms was alert (\w+) raised\?", text):
        hits = [
            own[0] for day in storms.values() if (own := [one for one in day if one.kind == m[1]])
        ]
        return number(len(hits)), {hit.turn for hit in hits}
    raise AssertionError(f"no rule answers: {text}")


def prove(case: EvalCase) -> set[str]:
    """Checks every gold and its evidence by brute force; returns the templates that were proved."""
    lines, tasks = read(case), set()
    for question in case.questions:
        answer, evidence = solve(lines, question)
        assert set(question.evidence) == evidence, question
        assert question.answerable == (answer is not None), question
        assert (
            answer is None
            or answer in question.gold
            or all(gold.split()[0] == answer for gold in question.gold)
        ), question
        tasks.add(question.facets["task"])
    return tasks
