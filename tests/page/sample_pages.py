"""Run folders with records and texts, made up from a seed, for tests of the page."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from msgspec import structs

from memeval.records import Label, Role, Status, Usage, Verdict
from memeval.report.compared import ComparisonData, DifferenceData
from memeval.report.plots.differences import DifferenceRow, forest_panel
from memeval.results import (
    RECORDS_FILE,
    CategoryResult,
    Note,
    NoteKind,
    Record,
    RepeatResult,
    RetrievedChunk,
    RunSummary,
    StepTimes,
    TextStore,
    json_line,
    texts_file,
)
from memeval.results.judge import JudgeIdentity
from memeval.results.rows import IngestRow, Written, WrittenSession
from memeval.results.steps import AgentStep, StepCall
from memeval.statistics.differences import ClusteredDifference

WORDS = (
    "harbour lantern violin orchard ticket bakery river garden letter camera winter sister bicycle "
    "museum recipe station blanket teacher painting weekend picnic mountain doctor kitten market"
).split()
CATEGORIES = (("1", "multi_hop"), ("2", "temporal"), ("3", "open_domain"), ("4", "single_hop"))
SYSTEMS = ("bm25", "rag", "dense", "hybrid", "mem0", "letta", "graph", "summary", "window", "none")
SKILL = (0.42, 0.5, 0.44, 0.53, 0.4, 0.46, 0.38, 0.35, 0.3, 0.05)
SHOWN = 10
"""Number of chunks that each reader is shown."""


BY_TOOLS = "conv-26/q6"
"""The question that was answered with tools."""


@dataclass(frozen=True)
class Size:
    """The size of the made-up runs."""

    cells: int = 2
    cases: int = 3
    questions: int = 20
    """Per conversation."""
    turns: int = 60
    repeats: int = 1
    words: int = 24
    """Length of each turn, answer and judge's reason, in words."""


def write_runs(root: Path, size: Size) -> list[Path]:
    """Writes run folders below `root`, as several systems on the same questions would leave
    them.
    """
    return [_write_run(root, size, cell) for cell in range(size.cells)]


def _write_run(root: Path, size: Size, cell: int) -> Path:
    system, rng = SYSTEMS[cell], random.Random(cell)
    folder, answers = root / "runs" / f"run-{cell:02d}-{system}", root / "answers"
    folder.mkdir(parents=True)
    answers.mkdir(exist_ok=True)

    rows: list[Record] = []
    keys = []
    for repeat in range(size.repeats):
        key = f"{cell:04d}{repeat:012d}"
        keys.append({"seed": repeat, "prepare": key, "answer": key, "judge": key})
        with TextStore(texts_file(answers / f"{key}.jsonl")) as texts:
            for case in range(size.cases):
                turns = turns_of(size, case)
                for number in range(size.questions):
                    rows.append(_record(size, rng, cell, case, number, repeat=repeat, turns=turns))
                    rows[-1] = _with_texts(rows[-1], turns, texts)

            written = _written(rows, texts)

        (answers / f"{key}.jsonl").write_text(json_line(written.to_json()), encoding="utf-8")

    (folder / RECORDS_FILE).write_text(
        "".join(json_line(row.to_json()) for row in rows), encoding="utf-8"
    )
    _summary(folder.name, cell, rows, size, keys).write(folder)

    return folder


def turns_of(size: Size, case: int) -> dict[str, str]:
    """The turns of a conversation, by id; the same for every run."""
    rng = random.Random(f"case {case}")
    return {
        f"D{number // 20 + 1}:{number % 20 + 1}": (
            f"[1:56 pm on {number % 28 + 1} May 2023] Ana: {_words(rng, size.words)}."
        )
        for number in range(size.turns)
    }


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def _record(
    size: Size,
    rng: random.Random,
    cell: int,
    case: int,
    number: int,
    *,
    repeat: int,
    turns: dict[str, str],
) -> Record:
    of_question = random.Random(f"{case}/{number}")
    category, name = CATEGORIES[of_question.choices(range(4), (18, 21, 6, 55))[0]]
    evidence = tuple(of_question.sample(list(turns), of_question.choice((1, 1, 1, 2, 3))))
    hard = of_question.uniform(-0.3, 0.3)
    draw = rng.random()
    is_right = draw < SKILL[cell] + hard
    shown = rng.sample(list(turns), SHOWN)
    if is_right:
        shown[0] = evidence[0]

    status = Status.ANSWER_FAILED if number % 97 == 96 and cell == 1 else Status.OK
    label = Label.CORRECT if is_right else Label.ABSTAINED if draw > 0.93 else Label.WRONG
    ranks = tuple(shown.index(turn) + 1 if turn in shown else None for turn in evidence)
    judged = Verdict("llm", label, float(is_right), reason=_words(rng, size.words).capitalize())

    return Record(
        question_id=f"conv-{26 + case}/q{number}",
        case_id=f"conv-{26 + case}",
        category=category,
        category_name=name,
        repeat=repeat,
        seed=repeat,
        question=f"When did Ana take the {_words(of_question, 4)} to the museum?",
        gold=(f"{of_question.randint(1, 28)} May 2023",),
        answerable=True,
        status=status,
        asked_at=datetime(2023, 6, 1, 9, 30),
        evidence=evidence,
        hypothesis=None if status is not Status.OK else _words(rng, size.words).capitalize() + ".",
        error=None if status is Status.OK else "ReadTimeout: no reply after 60 s",
        verdict=judged if status is Status.OK else None,
        retrieved=tuple(
            RetrievedChunk((turn,), score=round(12 - place + rng.random(), 6))
            for place, turn in enumerate(shown)
        ),
        evidence_ranks=ranks,
        context_tokens=200 + 90 * cell,
        usage=(Usage(Role.ANSWER, "gpt-4o-mini", "openai", 320 + 90 * cell, 24),),
        times=StepTimes(answer_ms=round(400 + 60 * cell + 200 * rng.random(), 3), judge_ms=310.5),
    )


def _with_texts(record: Record, turns: dict[str, str], texts: TextStore) -> Record:
    """The record with references to the texts of its chunks and its context."""
    chunks = record.retrieved or ()
    shown = [turns[chunk.turn_ids[0]] for chunk in chunks]
    return structs.replace(
        record,
        steps=_steps(record, turns, texts) if record.question_id == BY_TOOLS else (),
        retrieved=tuple(
            structs.replace(chunk, text=texts.put(text))
            for chunk, text in zip(chunks, shown, strict=True)
        ),
        context=texts.put_joined(shown, "\n"),
    )


def _steps(record: Record, turns: dict[str, str], texts: TextStore) -> tuple[AgentStep, ...]:
    """A reply with a call that returned the evidence and a call that failed, an empty reply, and
    the answer.
    """
    evidence = record.evidence[0]
    found = StepCall(
        name="grep",
        arguments=texts.put('{"pattern": "harbour|lantern", "lines": 3}'),
        result=texts.put("\n".join([turns[evidence], *turns.values()])),
        tokens=20,
        turn_ids=(evidence,),
    )
    failed = StepCall(
        name="remember",
        arguments=texts.put('{"text": '),
        result=texts.put("There is no tool 'remember'. <b>The tools</b> are: grep."),
        tokens=10,
        fault="unknown_tool",
    )
    first = AgentStep(text=texts.put("Let me look."), calls=(found, failed))
    return first, AgentStep(faults=("empty_reply",)), AgentStep(text=texts.put(record.hypothesis))


def _written(rows: Sequence[Record], texts: TextStore) -> IngestRow:
    """The row of a writer that kept the evidence of the question that was answered with tools."""
    record = next(row for row in rows if row.question_id == BY_TOOLS)
    call = StepCall(
        name="add_memory",
        arguments=texts.put('{"text": "Ana took the <i>lantern</i>."}'),
        result=texts.put("Stored."),
        tokens=2,
        turn_ids=record.evidence[:1],
    )
    made = (AgentStep(calls=(call,)), AgentStep(text=texts.put("done")))
    session = WrittenSession("s1", steps=2, calls=1, writes=1, made=made)
    counts = {"steps": 2, "calls": 1, "faults": 0, "writes": 1, "limited": 0}
    written = Written(**counts, read_characters=900, sessions=(session,))
    return IngestRow(f"ingest {record.case_id}", chunks=1, compressions=0, written=written)


def _summary(
    run_key: str, cell: int, rows: list[Record], size: Size, keys: list[dict[str, object]]
) -> RunSummary:
    system = SYSTEMS[cell]
    scores = [row.score for row in rows if row.score is not None]
    accuracy = sum(scores) / len(scores)
    return RunSummary(
        run_key=run_key,
        name=f"{system} turn k=10 llm short gpt-4o-mini",
        dataset="locomo",
        sweep=None,
        command=f"python -m memeval system={system} dataset=locomo llm=openai",
        params={"dataset": "locomo", "system": system, "top_k": 10, "judge": "llm"},
        tags={"protocol": "locomo 79fa87e9 labels=original judge=llm", "data_sha256": "79fa87e9"},
        metrics={
            "accuracy": accuracy,
            "accuracy_std": 0.004 if size.repeats > 1 else None,
            "accuracy_ci95_low": accuracy - 0.031,
            "accuracy_ci95_high": accuracy + 0.031,
            "token_f1": accuracy * 0.8,
            "recall_at_10": 0.3 + accuracy / 2,
            "n_questions": float(size.cases * size.questions),
            "coverage": len(scores) / len(rows),
            "context_tokens": 200.0 + 90 * cell,
            "tokens/total": 900_000.0,
            # The first run paid for the replies of the second.
            "cost_usd/total": 0.0 if cell == 1 else 0.2 + 0.13 * cell * (1.7 if cell % 3 else 0.6),
            "cost_usd_uncached/total": 0.2 + 0.13 * cell * (1.7 if cell % 3 else 0.6),
            "latency_ms/answer/p50": 500.0 + 60 * cell,
            "latency_ms/retrieval/p50": 2.0 + cell,
            "latency_ms/retrieval/p95": 5.5 + cell,
        },
        categories=tuple(_category(key, name, rows) for key, name in CATEGORIES),
        judge=JudgeIdentity("llm"),
        repeats=tuple(RepeatResult(number, number, {}) for number in range(size.repeats)),
        notes=(Note(NoteKind.REMARK, "The reader is a stand-in."),),
        valid=True,
        started_at="2026-11-21T20:00:00+01:00",
        finished_at="2026-11-21T20:00:17.300+01:00",
        statuses={
            status: count
            for status in ("ok", "answer_failed")
            if (count := sum(row.status == status for row in rows))
        },
        identity={"keys": keys},
    )


def _category(key: str, name: str, rows: list[Record]) -> CategoryResult:
    own = [row for row in rows if row.category == key]
    scores = [row.score for row in own if row.score is not None]
    share = sum(scores) / len(scores) if scores else None
    return CategoryResult(
        category=key,
        name=name,
        n=len(own),
        scored=len(scores),
        asked=len(own),
        headline=True,
        accuracy=share,
        accuracy_std=None,
        ci95_low=None if share is None else max(0.0, share - 0.06),
        ci95_high=None if share is None else min(1.0, share + 0.06),
        token_f1=share,
    )


def as_drawn(row: DifferenceData) -> DifferenceRow:
    """A difference in points."""
    low, high = row.result.low or 0.0, row.result.high or 0.0
    return DifferenceRow(row.label, 100 * row.result.mean, 100 * low, 100 * high, row.is_shown)


def sample_comparison(folders: list[Path], sentence: str = "bm25 against rag") -> ComparisonData:
    """A made-up comparison of the runs with the first of them."""
    runs = [RunSummary.read(folder) for folder in folders]
    names = [str(run.params["system"]) for run in runs]
    first = runs[0].metrics["accuracy"] or 0.0
    differences = []
    for run, name in zip(runs[1:], names[1:], strict=True):
        mean = (run.metrics["accuracy"] or 0.0) - first
        is_shown = abs(mean) > 0.05
        p = 0.00195 if is_shown else 0.21
        row = DifferenceData(
            cell=run.run_key,
            label=name,
            result=ClusteredDifference(
                mean=mean,
                count=1540,
                groups=10,
                se=0.015,
                independent_se=0.012,
                low=mean - 0.03,
                high=mean + 0.03,
                p=p,
                mde=0.042,
                mde_from_independent=False,
            ),
            adjusted_p=4 * p,
            is_shown=is_shown,
            sentence=f"{name} differs from {names[0]} by {100 * mean:.1f} points.",
        )
        differences.append(row)

    return ComparisonData(
        metric="accuracy",
        unit="points",
        sentences=(sentence,),
        baseline=runs[0].run_key,
        differences=tuple(differences),
        forest=forest_panel(list(map(as_drawn, differences)), "points"),
        letters=dict.fromkeys((run.run_key for run in runs), "a"),
        remarks=(),
        adjusted_how="adjusted for all comparisons together (max-T)",
    )
