"""Counts the questions on which two runs sent the same prompt: equal prompts get equal answers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from memeval.config.identity import result_settings
from memeval.results import SentMessage
from memeval.results.run import Run

Prompts = Mapping[tuple[str, int], tuple[SentMessage, ...] | str | None]
"""Prompts sent for each question and repeat, or their contexts; None if not known."""
_SWITCH = "system.temporal_edges"
_NOT_SENT = ("llm.judge", "llm.ingest")
"""Roles of the group `llm` that do not affect the answers' requests."""


class SentReader(Struct):
    """Reads the prompts that runs sent, once for each run."""

    _prompts: dict[str, Prompts] = field(default_factory=dict)
    _edges: dict[str, Counter[str]] = field(default_factory=dict)

    def count_alike(self, first: Run, second: Run, questions: Iterable[str]) -> int | None:
        """Number of questions for which both runs sent the same prompt to the same reader, in every
        repeat. None if the readers differ, or if the prompts are unknown.
        """
        if _reader_of(first) != _reader_of(second):
            return None

        prompts, other_prompts = self._read(first), self._read(second)
        if prompts.keys() != other_prompts.keys() or not any(prompts.values()):
            return None

        alike = set(questions)
        for (question, repeat), sent in prompts.items():
            if sent is None or sent != other_prompts[question, repeat]:
                alike.discard(question)

        return len(alike)

    def describe_edges(self, first: Run, second: Run) -> str:
        """Number of graph edges that `system.temporal_edges` can switch off, if the runs differ in
        that setting: `6 of 22,717 edges are temporal here`. Otherwise empty.
        """
        switch, other_switch = first.summary.params.get(_SWITCH), second.summary.params.get(_SWITCH)
        edges = self._edges.get(first.key, Counter())
        if switch == other_switch or not edges["all"]:
            return ""

        return f"{edges['temporal']:,} of {edges['all']:,} edges are temporal here"

    def _read(self, run: Run) -> Prompts:
        if run.key not in self._prompts:
            prompts, graphs = {}, {}
            for record in run.iter_records():
                # The offline reader is sent no messages: its contexts are compared.
                prompts[record.question_id, record.repeat] = record.prompt or record.context
                # Each question's record has the edge counts of its conversation's graph.
                graphs[record.case_id, record.repeat] = record.notes.get("edges", {})

            self._prompts[run.key] = prompts
            self._edges[run.key] = sum(map(Counter, graphs.values()), Counter())

        return self._prompts[run.key]


def _reader_of(run: Run) -> dict[str, Any]:
    """The settings of the model that answers."""
    settings = {}
    for name, value in result_settings(run.summary.params, run.summary.identity).items():
        is_of_models = name.partition(".")[0] == "llm"
        if is_of_models and not name.startswith(_NOT_SENT):
            settings[name] = value

    return settings
