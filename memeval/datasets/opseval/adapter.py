"""OpsEval (Liu et al., 2024): questions about network and database operation, asked closed-book or
with the explanations of other questions in memory.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from memeval.config.schema import PREPARE, RUN, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.grouping import repeated
from memeval.datasets.io.fields import quoted
from memeval.datasets.io.folder import check_files, digest_of_files
from memeval.datasets.locate import read_file
from memeval.datasets.opseval.groups import groups
from memeval.datasets.opseval.items import REPAIRS, OpsEvalItem, Rows
from memeval.datasets.opseval.memory import parts, remembered_text, sessions, turns_by_text
from memeval.datasets.opseval.metrics import CRITERIA, character_f1
from memeval.datasets.opseval.schema import FILES, read_file_of
from memeval.errors import UserError, unknown
from memeval.metrics.answer import answer_metrics
from memeval.metrics.letters import exact_set, jaccard
from memeval.records import AnswerKind, CategoryId, ChoiceLabels, EvalCase, EvalQuestion, Label
from memeval.results import Record
from memeval.statistics.means import mean


@dataclass(frozen=True)
class OpsEvalSettings(DatasetSettings):
    split: Literal["test", "dev"] = at(PREPARE, "test")
    """`dev` contains five questions of each domain."""
    framing: Literal["closed_book", "knowledge", "runbook"] = at(PREPARE, "closed_book")
    """With `closed_book` nothing is in memory; with `knowledge`, the solutions of other items; with
    `runbook`, those of the asked items too, and they are the evidence.
    """
    language: Literal["all", "en", "zh"] = at(RUN, "all")
    topics: tuple[str, ...] | None = at(RUN)
    """Topics that are asked, as the file names them; None asks all."""
    folds: int = at(PREPARE, 5, least=2)
    """Number of parts into which the items are divided if something is remembered; each part is a
    case.

    With `knowledge`, a part is asked with the solutions of the other parts in memory.
    """
    fold_seed: int = at(PREPARE, 0)
    """Determines the items of each part."""


class OpsEval(Dataset):
    """Reads the four files of a split. A question's id is that of its row."""

    settings_type = OpsEvalSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.PASSAGES, AnswerKind.CHOICES)
    benchmark: ClassVar[str | None] = "opseval"
    granularities: tuple[str, ...] = ("turn", "session", "chunk")
    category_names: Mapping[CategoryId, str] = dict(zip(FILES, FILES, strict=True))
    facet_names: Mapping[str, str] = {
        "kind": "Kind of question",
        "language": "Language",
        "topic": "Topic",
    }
    measure_names: Collection[str] = (
        "exact_set_accuracy",
        "jaccard",
        "jaccard/multiple",
        "unparsed_rate",
        *(f"fae_{name}" for name in CRITERIA),
    )
    settings: OpsEvalSettings

    def answer_metrics(self, answer: str, question: EvalQuestion) -> Mapping[str, float | None]:
        return answer_metrics(answer, question, official_f1=character_f1)

    def open(self) -> LoadedDataset:
        digests, pinned = check_files(self, self._paths)
        if next(self.cases(), None) is None:
            raise UserError(
                f"data set '{self.info.name}': no questions are left after filtering (framing, "
                "categories, language, topics)"
            )

        return self._loaded(digest_of_files(digests), pinned=pinned)

    @property
    def _paths(self) -> list[Path]:
        """The files of the split, one per domain."""
        return [self.path / self.settings.split / name for name in FILES.values()]

    @cached_property
    def _rows(self) -> Rows:
        rows = Rows()
        for domain, path in zip(FILES, self._paths, strict=True):
            content = read_file(self.info, path)
            read_file_of(domain=domain, content=content, path=path, rows=rows)

        topics: set[str] = set()
        for item in rows.items:
            topics.update(item.topics)

        for topic in self.settings.topics or ():
            if topic not in topics:
                raise unknown("value of dataset.topics", topic, sorted(topics))

        for row_id, count in repeated(item.row_id for item in rows.items):
            raise UserError(
                f"{self.path}: id {quoted(row_id)} occurs in {count} files; it must be unique."
            )

        return rows

    def read(self) -> Iterator[EvalCase]:
        """With `closed_book`, a case is a group of items that belong together, without memory;
        otherwise the items of a domain, language and fold.
        """
        if self.settings.framing != "closed_book":
            yield from self._remembering()
            return

        items = self._rows.items
        for number, group in enumerate(groups(items), start=1):
            questions = tuple(self._question(items[position]) for position in group)
            yield EvalCase(case_id=f"c{number}", sessions=(), questions=questions)

    def _remembering(self) -> Iterator[EvalCase]:
        """A case is a part of the items, asked with solutions in memory."""
        with_own = self.settings.framing == "runbook"
        asked_together = parts(
            self._rows.items,
            domains=self._domains_with_knowledge,
            folds=self.settings.folds,
            seed=self.settings.fold_seed,
            own=with_own,
        )
        for number, part in enumerate(asked_together, start=1):
            remembered = sessions(part.remembered, mask=with_own)
            places = turns_by_text(remembered) if with_own else {}
            # An item without a solution has no runbook that could be found.
            asked = [item for item in part.asked if item.solution or not with_own]
            if asked:
                questions = tuple(self._question(item, places) for item in asked)
                yield EvalCase(f"c{number}", sessions=remembered, questions=questions)

    @cached_property
    def _domains_with_knowledge(self) -> tuple[str, ...]:
        explained = {item.domain for item in self._rows.items if item.solution}
        if not explained:
            raise UserError(
                f"dataset.framing={self.settings.framing}: no item of {self.path} has a solution.",
                "use:  dataset.framing=closed_book",
            )

        return tuple(domain for domain in FILES if domain in explained)

    def _question(
        self, item: OpsEvalItem, places: Mapping[str, Sequence[str]] | None = None
    ) -> EvalQuestion:
        """`places` are the turns of each solution, if the item's own solution is in memory."""
        facets = {"kind": item.kind, "language": item.language}
        for topic in item.topics:
            if topic in (self.settings.topics or ()):
                facets["topic"] = topic
                break

        evidence: tuple[str, ...] = ()
        if places:
            evidence = tuple(places[remembered_text(item, mask=True)])

        return EvalQuestion(
            question_id=item.row_id,
            text=item.question,
            category=item.domain,
            gold=item.gold,
            evidence=evidence,
            choices=item.choices,
            right_choices=item.right,
            choice_labels=ChoiceLabels.LETTERS,
            multi_select=item.multi_select,
            facets=facets,
        )

    def asks(self, question: EvalQuestion) -> bool:
        """Filters by category, language and topic; a question has the facet `topic` only if its
        topic was chosen.
        """
        has_language = self.settings.language in ("all", question.facets["language"])
        has_topic = self.settings.topics is None or "topic" in question.facets
        return super().asks(question) and has_language and has_topic

    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        rows, framing = self._rows, self.settings.framing
        kinds = Counter(repair.kind for repair in rows.repairs)
        for kind, description in REPAIRS.items():
            if kinds[kind]:
                yield f"rows: {kinds[kind]} of {sum(rows.counts.values())}: {description}"

        if framing == "closed_book":
            return

        for domain, count in rows.counts.items():
            if domain not in self._domains_with_knowledge:
                yield f"{framing}: {domain} has no solutions: its {count} rows are not asked"

        if framing == "runbook":
            solved = masked = 0
            for item in rows.items:
                solved += bool(item.solution)
                masked += remembered_text(item, mask=True) != item.solution

            yield (
                "runbook: the solution of each asked item is in memory, and is its evidence; "
                f"choice letters are masked in {masked} of {solved} solutions"
            )

    def repairs(self) -> Iterator[str]:
        out = {"left_out": "left out: "}
        for repair in self._rows.repairs:
            yield f"{repair.row_id}: {out.get(repair.kind, '')}{repair.description}"

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """`unparsed_rate` covers all replies to questions with choices; the other values are means
        over readable replies. With `judge=opseval`, they include the means of its criteria.
        """
        exact, overlap, overlap_of_several, unparsed = [], [], [], []
        graded = []
        for record in records:
            if record.verdict is None:
                continue
            if record.verdict.parts:
                graded.append(record.verdict.parts)
            if not record.choices:
                continue

            # A reply that can't be read is not a wrong choice.
            unparsed.append(float(record.verdict.label is Label.UNSCORED))
            if record.verdict.label is not Label.UNSCORED:
                # Texts: a choice that is listed twice is right at both positions.
                chosen = {record.choices[position] for position in record.chosen or ()}
                right = {record.choices[position] for position in record.right_choices}
                exact.append(exact_set(chosen, right))
                overlap.append(jaccard(chosen, right))
                if record.facets["kind"] == "multiple":
                    overlap_of_several.append(overlap[-1])

        values = {}
        if graded:
            for name in CRITERIA:
                values[f"fae_{name}"] = mean(parts[name][0] for parts in graded)

        return values | {
            "exact_set_accuracy": mean(exact),
            "jaccard": mean(overlap),
            "jaccard/multiple": mean(overlap_of_several),
            "unparsed_rate": mean(unparsed),
        }
