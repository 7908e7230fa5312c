"""Checks a package level by level: intact, figures, verdicts, answers, who, registered."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memeval.comparison.build import compare_runs
from memeval.comparison.significance import groups_of
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.judges.contract import Judge, JudgeContext
from memeval.judges.registry import build_judge, judge_type
from memeval.metrics.registry import metrics
from memeval.packages.data import PackagedData, config_of, data_of, unlike_members, unlike_records
from memeval.packages.environment import environment_problems, prices_of, same_environment
from memeval.packages.export.terms import terms_of
from memeval.packages.facts import environment_facts, protocol_of, question_ids
from memeval.packages.form import ANSWERS, INGESTS, TEXTS, entry_of, is_withheld, manifest_bytes
from memeval.packages.read import Package, open_package
from memeval.packages.register import register_problems, signed_words
from memeval.packages.rows import RunRows, add_text, row_lines
from memeval.packages.signing import signer_of
from memeval.pipeline.execute.judging import judge_answer
from memeval.pipeline.execute.rows import is_about
from memeval.pipeline.open.code import OtherMetrics
from memeval.pipeline.verify.figures import same_figure
from memeval.pipeline.verify.sound import name_ids, verify_run
from memeval.results import JudgeIdentity, Record, Texts
from memeval.results.judge import RECORDED
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.run import Run
from memeval.text.shown import counted, one_line
from memeval.witness.figures import compare_pairs, questions_of

NAMES = {1: "intact", 2: "figures", 3: "verdicts", 4: "answers", 5: "who", 6: "registered"}
MAX_COMPARED = 8
"""Maximum runs of a package whose comparisons are made twice: 8 runs have 28 comparisons."""

_DECISION = attrgetter("label", "score", "chosen")
"""The members of a verdict in which a rule's verdicts must agree."""
AskAgain = Callable[[Run, Sequence[Record]], str]
"""Requests verdicts or answers of a run again, and reports the share of equal verdicts. Raises
`UserError` for settings that can't be used here. `memeval.api.again` has one of each kind.
"""


class Level(Struct):
    number: int
    did: str = ""
    is_done: bool = True
    """Whether the level applied and was checked."""
    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """`intact`, `figures` …"""
        return NAMES[self.number]


class Checks(Struct, frozen=True):
    """Options of `verify` for the levels that need more than the package."""

    data: bool = False
    """Whether missing data counts as a problem."""
    judge: AskAgain | None = None
    """Requests some verdicts of a run again; None if that is not requested."""
    answer: AskAgain | None = None
    """Answers some questions of a run again; None if that is not requested."""
    allowed_signers: Path | None = None


def verify_package(path: Path, checks: Checks = Checks()) -> Iterator[Level]:
    """The levels, one after the other; all others need the first. Raises `UserError` only for the
    user's mistakes: every fault of the package is a problem of a level.
    """
    with ExitStack() as stack:
        try:
            package = stack.enter_context(open_package(path))
        except UserError as error:
            yield Level(1, problems=[one_line(error, 300)])
            return

        yield from levels_of(package, checks)


def levels_of(package: Package, checks: Checks) -> Iterator[Level]:
    """The levels of an open package, as in `verify_package`."""
    intact = Level(1)
    try:
        yield from _Verifier(package, checks).levels(intact)
    except (UserError, ValueError, KeyError, TypeError) as error:
        # A package may have any content: until it is found intact, any error is its problem.
        if intact.did:
            raise

        intact.problems.append(one_line(error, 300))
        yield intact


class _Verifier:
    """Checks one unpacked package."""

    def __init__(self, package: Package, checks: Checks) -> None:
        self.package, self.checks = package, checks
        self.records: dict[str, list[Record]] = {}
        self.rows: dict[str, RunRows] = {}
        self.data: dict[str, PackagedData] = {}

    def levels(self, intact: Level) -> Iterator[Level]:
        figures = Level(2)
        with prices_of(self.package):
            for run in self.package.runs:
                check = verify_run(run.folder, brings_prices=True)
                self.records[run.key] = check.records
                self.rows[run.key] = RunRows(check)
                for line in check.problems:
                    level = figures if line in check.figure_findings else intact
                    level.problems.append(f"{run.key}: {line}")

                intact.unchecked += [
                    f"{run.key}: {line}" for line in check.unchecked if "own metrics" not in line
                ]

        self._check_intact(intact)
        entries = len(self.package.manifest.entries)
        intact.did = f"{entries} entries, {counted(len(self.package.runs), 'run')}"
        yield intact
        if intact.problems:
            return

        self._check_figures(figures)
        yield figures
        yield self._check_verdicts()
        yield self._check_answers()
        yield who_level(self.package, self.checks.allowed_signers)
        yield self._check_registered()

    def _check_intact(self, level: Level) -> None:
        package, texts = self.package, dict[str, bytes]()
        stored = Texts(package.folder / "package" / TEXTS)
        for run in package.runs:
            rows, records = self.rows[run.key], self.records[run.key]
            level.problems += row_problems(package, run, rows)
            # Its own questions, each once in each repeat: one listed twice would count twice.
            if len(rows.answers) != len(records):
                level.problems.append(f"{run.key}: {ANSWERS} does not contain one row per record")

            for repeat in range(len(run.summary.identity["keys"])):
                for ref, _ in rows.references(repeat):
                    add_text(texts, ref, stored.read_stored, str)

            if protocol_of(run.summary, records) != package.manifest.protocols[run.key]:
                level.problems.append(
                    f"{run.key}: its protocol differs from the one in the manifest"
                )

            packed = package.environment.get("runs", {}).get(run.key)
            if not same_environment(packed, environment_facts(run.summary, rows)):
                level.problems.append(f"{run.key}: environment.json describes it differently")

        level.problems += environment_problems(package)
        ordered = dict(sorted(texts.items()))
        level.problems += unlike_lines(package, TEXTS, ordered.values())
        level.problems += data_problems(package, self.records)

    def _check_figures(self, level: Level) -> None:
        runs = self.package.runs
        for run in runs:
            try:
                data = data_of(run)
            except UserError as error:
                into = level.problems if self.checks.data else level.unchecked
                into.append(f"{run.key}: not compared with the data: {error.message}")
                continue

            self.data[run.key] = data
            level.problems += [f"{run.key}: {line}" for line in self._unlike_data(run, data)]

        made = self._compare_again(level)
        level.did = (
            f"all figures of {counted(len(runs), 'run')} and {counted(made, 'comparison')} "
            f"recomputed from the rows by two implementations; {len(self.data)} also from the data"
        )

    def _unlike_data(self, run: Run, data: PackagedData) -> Iterator[str]:
        summary, records = run.summary, self.records[run.key]
        yield from unlike_members(summary, records, data)
        asked = question_ids(records)
        missing = [name for name in data.questions if name not in asked]
        if missing and not (summary.is_stopped or summary.params.get("system.only_listed")):
            number = counted(len(missing), "question")
            yield f"{number} of its settings have no record: {name_ids(missing)}"

        others = OtherMetrics.of(summary.tags.get(FIGURES_CODE, ""))
        unlike = list(unlike_records(records, self.rows[run.key], data, others))
        if unlike:
            number = counted(len(unlike), "record")
            yield f"{number} that differ from rows and data: {name_ids(unlike)}"

    def _compare_again(self, level: Level) -> int:
        """Compares runs by memeval and by the witness; returns the number of comparisons."""
        runs = self.package.runs[:MAX_COMPARED]
        if len(runs) < 2 or any(run.metrics.get("accuracy") is None for run in runs):
            return 0

        comparison = compare_runs(runs, metrics()["accuracy"], all_pairs=True, categories=False)
        # Runs that may be compared with each other are adjusted together.
        for group in groups_of((pair.first, pair.second) for pair in comparison.differences):
            keys, asked = [], []
            for run in runs:
                if run.key in group:
                    keys.append(run.key)
                    asked.append(questions_of(self._headline_rows(run)))

            pairs, places = [], []
            for pair in comparison.differences:
                if pair.first in group:
                    pairs.append(pair)
                    places.append((keys.index(pair.first), keys.index(pair.second)))

            for pair, (other, p) in zip(pairs, compare_pairs(asked, places), strict=True):
                result = pair.result
                figures = (result.mean, result.low, result.high, pair.adjusted_p)
                again = (None,) * 4 if other is None else (other.mean, other.low, other.high, p)
                # Only with two or more conversations: a single one has no p.
                if result.groups > 1 and not all(map(same_figure, figures, again)):
                    level.problems.append(
                        f"the second implementation compares {pair.first} and {pair.second} "
                        "differently"
                    )

        return len(comparison.differences)

    def _headline_rows(self, run: Run) -> list[dict[str, Any]]:
        headline = run.summary.headline
        rows = map(Record.to_json, self.records[run.key])
        return [row for row in rows if not headline or str(row["category"]) in headline]

    def _check_verdicts(self) -> Level:
        level, done, agreements = Level(3), 0, list[str]()
        # Runs that only retrieve have no verdicts: they count only if no run has any.
        judged_runs = [run for run in self.package.runs if run.summary.judge is not None]
        for run in judged_runs or self.package.runs:
            try:
                data = self.data.get(run.key)
                config = data.config if data else config_of(run)
                judge = _rule_judge(config)
                if data is None and _judge_of(run) is not None:
                    level.unchecked.append(
                        f"{run.key}: its data is not on this machine, so nothing was judged again"
                    )
                elif judge is None and self.checks.judge and _judge_of(run) is not None:
                    agreements.append(f"{run.key}: {self.checks.judge(run, self.records[run.key])}")
                elif judge is None or data is None:
                    level.unchecked.append(f"{run.key}: {_why_not_again(run)}")
                else:
                    judged, unlike = asyncio.run(self._judge_again(run, judge, data))
                    done += judged
                    if unlike:
                        level.problems.append(
                            f"{run.key}: {counted(len(unlike), 'verdict')} that differ from the "
                            f"rule's: {name_ids(unlike)}"
                        )
            except UserError as error:
                level.unchecked.append(f"{run.key}: {error.message}")

        level.did = "; ".join([f"{counted(done, 'verdict')} judged again by a rule", *agreements])
        level.is_done = done > 0 or bool(agreements)
        return level

    async def _judge_again(
        self, run: Run, judge: Judge, data: PackagedData
    ) -> tuple[int, list[str]]:
        """How many verdicts were judged again, and the questions of those that differ."""
        judged, unlike = 0, []
        rows = self.rows[run.key]
        records = {(record.repeat, record.question_id): record for record in self.records[run.key]}
        for key, verdict in rows.verdicts.items():
            answer, question = rows.answers[key], data.questions.get(verdict.id)
            if verdict.verdict is None or question is None or answer.hypothesis is None:
                continue

            row = await judge_answer(judge, question, answer.hypothesis, records[key].metrics)
            if row.verdict is None or _DECISION(row.verdict) != _DECISION(verdict.verdict):
                unlike.append(verdict.id)

            judged += 1

        return judged, unlike

    def _check_answers(self) -> Level:
        answer_again = self.checks.answer
        level = Level(4, did="not requested (--answer N)", is_done=answer_again is not None)
        if answer_again is None:
            return level

        agreements = []
        for run in self.package.runs:
            try:
                agreements.append(f"{run.key}: {answer_again(run, self.records[run.key])}")
            except UserError as error:
                level.unchecked.append(f"{run.key}: {error.message}")

        level.did = "; ".join(agreements) or "no question was answered again"
        return level

    def _check_registered(self) -> Level:
        register = self.package.register
        level = Level(6, did="nothing was registered beforehand", is_done=register is not None)
        if register is None:
            return level

        level.did = "beforehand"
        try:
            level.did += signed_words(register, self.checks.allowed_signers)
        except UserError as error:
            level.problems.append(f"register.json: {error.message}")

        level.problems += register_problems(
            register, self.package.runs, records=self.records, rows=self.rows
        )
        level.unchecked += map(str, register.get("left_out", ()))
        return level


def who_level(package: Package, allowed_signers: Path | None) -> Level:
    """Level 5: the signer of the manifest."""
    level = Level(5)
    who = one_line(package.manifest.who, 200) or "no publisher named"
    if package.signature is None:
        level.did, level.is_done = f"not signed ({who})", False
        return level

    try:
        signer = signer_of(manifest_bytes(package.manifest), package.signature, allowed_signers)
        level.did = f"signed by {signer} ({who})"
        if signer is None:
            level.is_done = False
            level.did = f"signed by an unknown key ({who}); to check it, use --allowed-signers"
    except UserError as error:
        level.did = f"signed ({who})"
        level.problems.append(error.message)

    return level


def row_problems(package: Package, run: Run, rows: RunRows) -> Iterator[str]:
    """Lines of a run's rows that `pack` does not write, and verdicts about another answer."""
    keys = run.summary.identity["keys"]
    for name, file_rows in rows.files.items():
        lines = row_lines(keys, name, file_rows, lambda _, row: row.to_json(), {})
        yield from unlike_lines(package, entry_of(run.key, name), lines)

    for key, verdict in rows.verdicts.items():
        answer = rows.answers.get(key)
        if answer and not is_about(verdict, answer):
            name = one_line(verdict.id, 60)
            yield f"{run.key}: the verdict on {name} is about a different answer"


def unlike_lines(package: Package, entry: str, packed: Iterable[bytes]) -> Iterator[str]:
    """The first line of an entry that differs from what `pack` writes, if any differs."""
    with (package.folder / "package" / entry).open("rb") as file:
        if entry.endswith(INGESTS):
            # Memories have no order: runs of one package may share them.
            positions = {line: position for position, line in enumerate(file)}
            packed = sorted(packed, key=lambda line: positions.get(line, len(positions)))
            file.seek(0)

        for number, (line, expected) in enumerate(zip_longest(file, packed), start=1):
            if line != expected:
                yield f"{entry}, line {number}: for these records, pack writes another line"
                return


def data_problems(package: Package, records: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    """Problems with the manifest's statements about the data of the runs, and with their texts."""
    listed = package.manifest.data
    data = {(dataset.name, dataset.sha256, dataset.licence) for dataset in listed}
    asked = set()
    for run in package.runs:
        summary = run.summary
        asked.add((summary.dataset, summary.data_sha256, terms_of(summary).licence))

    if data != asked or len(data) != len(listed):
        yield "the manifest and the runs name different data"

    for run in package.runs:
        is_said = any(entry.texts for entry in listed if entry.name == run.summary.dataset)
        if is_said == any(is_withheld(record.question) for record in records[run.key]):
            yield f"{run.key}: the manifest describes its texts differently"
        if is_said and not terms_of(run.summary).allows_texts:
            yield (
                f"{run.key}: it contains texts of {one_line(run.summary.dataset)}, whose "
                "licence is not known to allow passing them on"
            )


def _rule_judge(config: RunConfig) -> Judge | None:
    """The judge of a run if it is a rule; None if it is a model, or recorded elsewhere."""
    name = config.judge.name
    if config.stages != "all" or name == RECORDED or judge_type(name).needs_model:
        return None

    context = JudgeContext(_refuse_model, threshold=config.judge.threshold, seed=config.seed)
    return build_judge(name, context)


def _refuse_model() -> Any:
    raise UserError("a rule-based judge requested a model")


def _judge_of(run: Run) -> JudgeIdentity | None:
    """The judge of a run, if it can judge again; None without verdicts, or for recorded ones."""
    judge = run.summary.judge
    return None if judge is None or judge.name == RECORDED else judge


def _why_not_again(run: Run) -> str:
    judge = run.summary.judge
    if judge is None:
        return "nothing was judged"
    if judge.name == RECORDED:
        return "its verdicts were recorded elsewhere, so they can't be repeated"

    return f"a model judged ({one_line(judge.shown)}): to repeat some verdicts, use --judge N"
