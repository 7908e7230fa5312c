"""`python -m memeval data check FILE`: reports every mistake in your own file."""

from argparse import Namespace
from pathlib import Path

from memeval.api.overrides import as_word
from memeval.datasets.json.reader import DRAFTED, REJECTED, OwnReader
from memeval.text.shipped import location_of
from memeval.text.shown import all_counted, counted, in_shell, one_line, some_of

MAX_CATEGORIES = 20
"""Maximum categories that are listed with their counts."""


def check_chosen(chosen: Namespace) -> int:
    return check(Path(chosen.file))


def check(path: Path) -> int:
    """Prints the mistakes with their locations and returns 2, or prints a summary of the file."""
    reader = OwnReader(path)
    reader.check()
    mistakes = reader.mistakes.messages
    for mistake in mistakes:
        print(mistake)

    if mistakes:
        number = counted(len(mistakes), "mistake")
        print(f"\n{path}: {number}; the schema is in {reader.mistakes.schema}")
        return 2

    print(*lines(reader), sep="\n")
    return 0


def lines(reader: OwnReader) -> list[str]:
    """Summary of a file without mistakes, with the command to run it or the missing parts."""
    counts = reader.counts
    shown = {noun: counts[noun] for noun in ("cases", "sessions", "turns", "questions")}
    described = [f"{reader.path}: {all_counted(shown)}", f"  name: {reader.name}"]
    if not counts["questions"]:
        described.append("  no questions yet: a run needs at least one")
        return [*described, f"write or draft some:  {location_of('docs/own_data.md')}"]

    categories = reader.categories.most_common()
    named = [f"{one_line(name, 60)} {count:,}" for name, count in categories]
    described.append(f"  categories: {some_of(named, MAX_CATEGORIES)}")
    if unanswerable := counts["questions"] - counts["answerable"]:
        number = counted(unanswerable, "question")
        described.append(f"  the right answer is a refusal: {number}")

    drafted, rejected = reader.statuses[DRAFTED], reader.statuses[REJECTED]
    for count, noun in ((drafted, "draft"), (rejected, "rejected question")):
        if count:
            described.append(f"  not asked by a run: {counted(count, noun)}")

    described += [f"  {note}" for note in reader.notes()]
    if drafted + rejected == counts["questions"]:
        return [*described, f"review them:  python -m memeval data review {in_shell(reader.path)}"]

    setting = as_word("dataset.path", reader.path)
    return [*described, f"run it:  python -m memeval dataset=json {setting}"]
