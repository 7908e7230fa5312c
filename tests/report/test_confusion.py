from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_records import record, verdict, write_records
from sample_runs import summary, write_folder

from memeval.metrics.positions import position_measures
from memeval.records import ChoiceLabels, Label, Status
from memeval.report.confusion import confusion_section, read_confusion
from memeval.report.markdown import write_report
from memeval.report.plots.draw import draw
from memeval.report.plots.run import positions_plot
from memeval.results import Record


def choosing(
    right: int,
    chosen: int | None,
    status: Status = Status.OK,
    labels: ChoiceLabels = ChoiceLabels.DIGITS,
) -> Record:
    read = None if chosen is None else verdict(chosen=(chosen,))
    unread = verdict(Label.UNSCORED) if status is Status.UNPARSED else None
    return record(
        choices=tuple(map(str, range(4))),
        choice_labels=labels,
        right_choices=(right,),
        status=status,
        verdict=read or unread,
    )


RECORDS = (
    choosing(0, 0),
    choosing(0, 0),
    choosing(0, 3),
    choosing(1, 1),
    choosing(3, None, Status.UNPARSED),
    choosing(2, None, Status.ANSWER_FAILED),
)


def written(folder: Path, records: tuple[Record, ...] = RECORDS) -> Path:
    return write_records(folder, records)


def test_replies_are_counted_by_right_and_chosen_position(tmp_path: Path) -> None:
    matrix = read_confusion(written(tmp_path))
    assert matrix is not None
    assert matrix.rows() == [[2, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert matrix.bias == pytest.approx(0.25)


def test_position_bias_of_repeats_is_the_run_s_figure(tmp_path: Path) -> None:
    """The mean over repeats, not that of all replies together."""
    repeats = [
        [replace(row, repeat=number) for row in rows]
        for number, rows in enumerate((RECORDS, [choosing(2, 0), choosing(3, 3)]))
    ]
    matrix = read_confusion(written(tmp_path, (*repeats[0], *repeats[1])))
    figures = [position_measures(rows)["position_bias"] for rows in repeats]
    assert figures == [0.25, 0.5]
    assert matrix is not None and matrix.bias == pytest.approx(0.375)


def test_table_has_a_row_per_position_and_a_column_for_unparsed_replies(
    tmp_path: Path,
) -> None:
    matrix = read_confusion(written(tmp_path))
    assert matrix is not None
    lines = [line for line in confusion_section(matrix) if line.startswith("|")]
    assert lines[0] == "| right ↓ chosen → | 0 | 1 | 2 | 3 | unparsed | of all, % |"
    assert lines[2] == "| 0 | **2** | 0 | 0 | 1 | 0 | 60.0 |"
    assert lines[5] == "| 3 | 0 | 0 | 0 | **0** | 1 | 20.0 |"
    assert lines[6] == "| chosen, % | 40.0 | 20.0 | 0.0 | 20.0 | 20.0 |  |"
    assert {line.count("|") for line in lines} == {8}


@pytest.mark.parametrize(
    "records", [(), (record(),), (choosing(0, 0, labels=ChoiceLabels.LETTERS),)]
)
def test_runs_without_numbered_choices_have_no_matrix(
    tmp_path: Path, records: tuple[Record, ...]
) -> None:
    assert read_confusion(written(tmp_path, records)) is None
    assert read_confusion(tmp_path / "nothing.jsonl") is None


@pytest.mark.slow
def test_plot_repeats_byte_for_byte(tmp_path: Path) -> None:
    matrix = read_confusion(written(tmp_path))
    assert matrix is not None
    first, second = (
        draw(positions_plot(matrix, "bm25 turn k=10"), tmp_path / name).read_bytes()
        for name in ("a.png", "b.png")
    )
    assert first == second and first.startswith(b"\x89PNG") and len(first) > 5_000


def test_report_has_table_and_plot_if_questions_have_choices(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, summary())
    write_report(folder)
    assert "Positions" not in (folder / "report.md").read_text(encoding="utf-8")
    written(folder)
    write_report(folder)
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "\n## Positions\n" in text and "![positions](plots/positions.png)" in text
    assert (folder / "plots" / "positions.png").is_file()
