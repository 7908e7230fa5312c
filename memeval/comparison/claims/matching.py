"""Checks whether a run is comparable with a published figure, aspect by aspect."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.comparison.claims.records import JUDGED, Claim, ClaimedFigure, Protocol
from memeval.metrics.registry import metric_named
from memeval.metrics.retrieval import RANKING
from memeval.results import CategoryResult, JudgeIdentity, RunSummary, is_imported
from memeval.results.summary import as_yaml
from memeval.text.shown import natural_order, one_line

_AFFECT_RETRIEVAL = ("dataset", "system", "granularity", "top_k", "reranker", "compression_turn")
"""Groups of settings that affect retrieval, in addition to an embedder named by a claim."""
_NOT_SETTINGS = {
    "dataset",
    "dataset.path",
    "dataset.labels",
    "dataset.categories",
    "dataset.sample_seed",
    "dataset.allow_unpinned",
    "dataset.category_names",
    "dataset.evidence_recall",
}
"""Settings that are compared as aspects of their own, or that affect no figure."""


class Sameness(StrEnum):
    """Relation of an aspect of a run to that of a claim."""

    SAME = "same"
    OTHER = "other"
    NOT_DISCLOSED = "not disclosed"


class Aspect(Struct, frozen=True):
    """A property that must be the same in two figures to compare them."""

    name: str
    sameness: Sameness
    text: str


class Match(Struct, frozen=True):
    """A published figure compared with a run."""

    claim: Claim
    figure: ClaimedFigure
    own: float | None
    """The run's value on the same categories, in per cent; None if it was not measured."""
    aspects: tuple[Aspect, ...]
    system: str = ""
    """The run's system with its settings."""

    @property
    def verdict(self) -> str:
        """`comparable`, `not comparable`, or `can't be said` if the source discloses too little."""
        if self.texts(Sameness.OTHER):
            return "not comparable"

        return "can't be said" if self.texts(Sameness.NOT_DISCLOSED) else "comparable"

    @property
    def allowed_difference(self) -> str:
        """The difference that the comparison allows: the system, if the claim is about one outside
        memeval; else empty.
        """
        if self.claim.protocol.settings or self.figure.settings:
            return ""

        return f"the system: {self.system} here, {self.figure.system} there"

    @property
    def reasons(self) -> list[str]:
        """Reasons why the two are not comparable, differences first."""
        return [*self.texts(Sameness.OTHER), *self.texts(Sameness.NOT_DISCLOSED)]

    def texts(self, kind: Sameness) -> tuple[str, ...]:
        return tuple(aspect.text for aspect in self.aspects if aspect.sameness is kind)


def _known_aspect(name: str, is_same: bool, text: str) -> Aspect:
    """An aspect known on both sides."""
    return Aspect(name, Sameness.SAME if is_same else Sameness.OTHER, text)


def match_claim(claim: Claim, summary: RunSummary) -> list[Match]:
    """Compares each figure of a claim with a run."""
    matches = []
    for figure in claim.figures:
        value = own_value(claim.protocol, figure, summary)
        aspects = tuple(_aspects(claim, figure, summary))
        matches.append(Match(claim, figure, value, aspects, system=_system_words(summary)))

    return matches


def _system_words(summary: RunSummary) -> str:
    """The settings of the system, in one line; for imported answers, the name of their file."""
    file = summary.params.get("system.file")
    if file is not None:
        return f"the answers of {one_line(Path(str(file)).name, 80)}"

    parts = []
    for name, value in summary.params.items():
        group = name.partition(".")[0]
        if value is not None and group in _AFFECT_RETRIEVAL and group != "dataset":
            parts.append(f"{name}={one_line(as_yaml(value), 80)}")

    return " ".join(parts)


def own_value(protocol: Protocol, figure: ClaimedFigure, summary: RunSummary) -> float | None:
    """The run's value of a claim's metric, in per cent, on the claim's categories."""
    rows = claimed_rows(protocol, summary)
    if figure.metric not in JUDGED:
        value = summary.metrics.get(figure.metric)
        is_split = protocol.categories is not None and len(rows) < len(summary.categories)
        if value is None or is_split:
            return None

        return 100 * value

    # Averaged over questions, not categories: LoCoMo's categories differ ninefold in size.
    right, scored = [], 0
    for row in rows:
        if row.accuracy is not None:
            right.append(row.accuracy * row.scored)
            scored += row.scored

    if not scored:
        return None

    return 100 * sum(right) / scored


def rests_on_answers(metric: str) -> bool:
    """Whether a metric depends on a reader's answers; the others are computed from the ranking."""
    return metric in JUDGED or metric_named(metric).of_answer is not None


def claimed_rows(protocol: Protocol, summary: RunSummary) -> list[CategoryResult]:
    """The rows of the claim's categories; of those that count if the source names none."""
    claimed, names = protocol.categories, set(map(str, protocol.categories or ()))
    return [
        row
        for row in summary.categories
        if row.category in names or (claimed is None and row.headline)
    ]


def _aspects(claim: Claim, figure: ClaimedFigure, summary: RunSummary) -> Iterator[Aspect]:
    protocol = claim.protocol
    labels = str(summary.params.get("dataset.labels", "original"))
    yield _data(protocol, summary)
    yield _stated_aspect("labels", protocol.labels, labels)
    yield _questions(protocol, figure, summary)
    yield _categories(protocol, figure, summary)
    if protocol.averaged != "questions":
        text = "averaged over conversations there, over questions here"
        yield Aspect("average", Sameness.OTHER, text)

    if rests_on_answers(figure.metric) and summary.only_retrieves:
        yield Aspect("reader", Sameness.OTHER, "nothing was answered here (stages=retrieve)")
    elif rests_on_answers(figure.metric):
        if figure.metric in JUDGED:
            yield from _judge(protocol, summary)

        yield from _reader(protocol, summary)

    if protocol.k is not None:
        yield _depth(protocol.k, summary)

    yield from _configuration(claim, figure, summary)

    if summary.is_stopped:
        yield Aspect("coverage", Sameness.OTHER, "the run was STOPPED before its end")
    elif not summary.valid:
        yield Aspect("coverage", Sameness.OTHER, "the run is INVALID")


def _data(protocol: Protocol, summary: RunSummary) -> Aspect:
    sha256 = summary.data_sha256
    if protocol.data_sha256 is None:
        return Aspect("data", Sameness.NOT_DISCLOSED, "the source does not identify its data file")
    if sha256 == protocol.data_sha256:
        return Aspect("data", Sameness.SAME, f"the same file, sha256 {sha256[:8]}")

    shown = f"sha256 {one_line(sha256)[:8]} here, {protocol.data_sha256[:8]} there"
    return Aspect("data", Sameness.OTHER, f"a different data file: {shown}")


def _questions(protocol: Protocol, figure: ClaimedFigure, summary: RunSummary) -> Aspect:
    rows: Sequence[CategoryResult] = claimed_rows(protocol, summary)
    if figure.metric not in JUDGED:
        # Such a metric covers everything that was asked, and can't be split by category.
        rows = summary.categories

    claimed = None if protocol.questions is None else f"{protocol.questions:,}"
    return _stated_aspect("number of questions", claimed, f"{sum(row.n for row in rows):,}")


def _categories(protocol: Protocol, figure: ClaimedFigure, summary: RunSummary) -> Aspect:
    """Compares the categories with the claim's, as different ones may have equal counts."""
    if protocol.categories is None:
        return Aspect("categories", Sameness.SAME, "the categories that count")

    scored = {row.category for row in summary.categories}
    claimed = set(map(str, protocol.categories))
    # The accuracy can be split by category, but the recall over all of them can't.
    is_same = claimed <= scored if figure.metric in JUDGED else claimed == scored
    here = ", ".join(map(one_line, sorted(scored)))
    text = f"categories {here} here, {', '.join(sorted(claimed, key=natural_order))} there"
    return _known_aspect("categories", is_same, text)


def _configuration(claim: Claim, figure: ClaimedFigure, summary: RunSummary) -> Iterator[Aspect]:
    """Every setting of data and system, against those of the claim."""
    claimed = {**(claim.protocol.settings or {}), **(figure.settings or {})}
    # A system from outside memeval is the allowed difference: see `Match.allowed_difference`.
    if not claimed and rests_on_answers(figure.metric):
        return

    params = {name: as_yaml(value) for name, value in summary.params.items() if value is not None}
    for name, value in claimed.items():
        here = params.get(name)
        shown = "has no value" if here is None else f"is {one_line(here)}"
        yield _known_aspect("settings", here == value, f"{name} {shown} here, {value} there")

    for name, value in params.items():
        if name not in claimed and _counts(name, figure):
            text = f"{name} is {one_line(value)} here, but the source does not state it"
            yield Aspect("settings", Sameness.NOT_DISCLOSED, text)


def _counts(name: str, figure: ClaimedFigure) -> bool:
    """Whether a setting of data or system may change a figure."""
    if name in _NOT_SETTINGS or name.partition(".")[0] not in _AFFECT_RETRIEVAL:
        return False

    # The whole ranking does not depend on how much of it is shown.
    return name != "top_k" or not figure.metric.startswith(RANKING)


def _judge(protocol: Protocol, summary: RunSummary) -> Iterator[Aspect]:
    judge = summary.judge
    if judge is None or not judge.is_named:
        yield Aspect("judge", Sameness.NOT_DISCLOSED, "the run does not say who judged it")
        return

    if summary.has_recorded_verdicts:
        yield from _recorded_judge(protocol, judge)
        return

    if judge.prompt_sha256 is None and protocol.judge_model is not None:
        text = f"judged by {one_line(judge.name)} here, by the model {protocol.judge_model} there"
        yield Aspect("judge", Sameness.OTHER, text)
        return

    yield _judge_prompt(protocol, judge, summary)
    yield _model("judge model", protocol.judge_model, judge.model or "none")
    yield _stated_aspect("judge's requests", protocol.judge_request, dict(judge.request))
    yield _stated_aspect("judgings of each answer", protocol.judge_repeats, judge.repeats)


def _depth(claimed: int, summary: RunSummary) -> Aspect:
    if is_imported(summary):
        text = f"the answer file does not say how much was retrieved; k is {claimed} there"
        return Aspect("k", Sameness.NOT_DISCLOSED, text)

    return _stated_aspect("k", claimed, summary.params.get("top_k"))


def _stated_aspect(name: str, claimed: Any, here: Any) -> Aspect:
    """An aspect of the run, compared with the source's if the source states it."""
    if claimed is None:
        return Aspect(name, Sameness.NOT_DISCLOSED, f"the source does not state the {name}")

    return _known_aspect(
        name, here == claimed, f"{name}: {one_line(here, 200)} here, {claimed} there"
    )


def _recorded_judge(protocol: Protocol, judge: JudgeIdentity) -> Iterator[Aspect]:
    """Verdicts that came with the answers name their judge, but not its prompt."""
    described = protocol.judge or "of an undisclosed kind"
    text = (
        "it can't be checked whether the recorded verdicts come from the source's judge "
        f"({described})"
    )
    yield Aspect("judge", Sameness.NOT_DISCLOSED, text)
    yield _model("judge model", protocol.judge_model, judge.model or "none")


def _judge_prompt(protocol: Protocol, judge: JudgeIdentity, summary: RunSummary) -> Aspect:
    described = protocol.judge or "of an undisclosed kind"
    if judge.prompt_sha256 is None:
        text = f"judged by {one_line(judge.name)}, not a model, here; by a judge there: {described}"
        return Aspect("judge", Sameness.OTHER, text)

    if protocol.judge_prompt_sha256 is not None:
        is_same = judge.prompt_sha256 == protocol.judge_prompt_sha256
        return _known_aspect("judge", is_same, f"the judge's prompt: {described} there")

    if summary.params.get("judge.prompt_file") is not None:
        text = f"it can't be checked whether your judge's prompt equals the source's ({described})"
        return Aspect("judge", Sameness.NOT_DISCLOSED, text)

    if protocol.judge_like is not None and judge.name == protocol.judge_like:
        text = f"the judge follows the same protocol ({described}) with a different wording"
    else:
        text = f"judge {one_line(judge.name)} here, a different one there: {described}"

    return Aspect("judge", Sameness.OTHER, f"{text}; for the original, set judge.prompt_file=")


def _reader(protocol: Protocol, summary: RunSummary) -> Iterator[Aspect]:
    if is_imported(summary):
        text = "the answer file does not say which model answered, or with which prompt"
        yield Aspect("reader", Sameness.NOT_DISCLOSED, text)
        return

    model = str(summary.params.get("llm.model") or summary.params.get("llm") or "")
    yield _model("reader", protocol.reader_model, model)
    sha256 = protocol.reader_prompt_sha256
    if sha256 is None:
        text = "it can't be checked whether the answer prompt is the same"
        yield Aspect("prompt", Sameness.NOT_DISCLOSED, text)
    else:
        is_same = sha256 == summary.tags.get("prompt_sha256")
        yield _known_aspect("prompt", is_same, "the answer prompt")

    names = protocol.reader_settings or ()
    own_settings = {name: as_yaml(summary.params.get(name)) for name in names}
    yield _stated_aspect("reader's settings", protocol.reader_settings, own_settings)


def _model(name: str, claimed: str | None, model: str) -> Aspect:
    # Providers put their name before the model's. A dated version has a different name, so it
    # counts as a different model.
    return _stated_aspect(name, claimed, model.rpartition("/")[2])
