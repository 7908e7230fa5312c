"""`python -m memeval data review FILE`: review of your own questions."""

import getpass
import signal
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from memeval.cli.review_terminal import review_in_terminal
from memeval.datasets.json.agreement import agreement_text, review_agreement
from memeval.datasets.json.document import OwnDocument
from memeval.datasets.json.frozen import is_frozen
from memeval.datasets.json.review import ReviewFile, decisions
from memeval.datasets.json.versions import named_questions
from memeval.errors import UserError
from memeval.text.shipped import location_of
from memeval.text.shown import counted, one_line

LONGEST_NAME = 80


def review(chosen: Namespace) -> int:
    """Serves the page, asks on the terminal, or prints the agreement of the reviewers."""
    path = Path(chosen.file)
    if is_frozen(path):
        raise UserError(
            f"{path} is frozen and can't change.", "review the file that it was frozen from"
        )
    if chosen.agreement:
        for line in agreement_lines(OwnDocument.read(path)):
            print(line)

        return 0

    name = _reviewer(chosen.reviewer)
    review_file = ReviewFile(path, name, disputed=chosen.disputed)
    if not review_file.questions():
        document = OwnDocument.read(path)
        if chosen.disputed and any(case.questions for case in document.checked):
            print(_no_dispute_text(document, name))
            return 0

        raise UserError(
            f"{path} has no questions yet.",
            f"to write or draft some:  {location_of('docs/own_data.md')}",
        )

    if chosen.terminal:
        review_in_terminal(review_file)
    else:
        serve(review_file)

    shown = review_file.questions()
    left = sum(question.is_left for question in shown)
    questions = counted(len(shown), "question")
    print(f"{path}: {name} has decided {len(shown) - left:,} of {questions}")
    return 0


def _no_dispute_text(document: OwnDocument, reviewer: str) -> str:
    """Explains why `--disputed` shows a reviewer no question."""
    if any(pair.differing for pair in review_agreement(document.cases).pairs):
        return f"{reviewer} has decided every question that reviewers disagree on."

    return "Reviewers don't disagree on any question."


def serve(review_file: ReviewFile) -> None:
    """Serves the page until Ctrl-C."""
    from memeval.cli.review_server import ReviewServer

    # After SIGTERM, the server stops as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ReviewServer(review_file) as server:
        print(f"Review:  {server.address}   (Ctrl-C to stop)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()

        # Waits for a save in progress, and prevents any later one.
        server.lock.acquire()


def agreement_lines(document: OwnDocument) -> Iterator[str]:
    """κ of each pair of reviewers, and the questions on which they differ."""
    agreement = review_agreement(document.cases)
    questions = named_questions(document.cases)
    if not agreement.pairs:
        yield "No two reviewers have decided on the current wording of the questions."

    for pair in agreement.pairs:
        yield one_line(agreement_text(pair))
        for name in pair.differing:
            decided = decisions(questions[name])
            words = f"{pair.first} {decided[pair.first]}, {pair.second} {decided[pair.second]}"
            yield f"  {one_line(name)}: {one_line(words)}"

    if agreement.outdated:
        yield f"not counted: {counted(agreement.outdated, 'decision')} on earlier wordings"
    if any(pair.differing for pair in agreement.pairs):
        yield (
            "for a third opinion:  python -m memeval data review "
            f"{one_line(document.path, 1000)} --disputed --reviewer NAME"
        )


def _reviewer(given: str | None) -> str:
    """The given name, or else that of the account."""
    try:
        name = getpass.getuser() if given is None else given.strip()
    except (OSError, KeyError) as error:
        raise UserError("name the reviewer:  --reviewer NAME") from error

    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError(f"--reviewer must be a name of up to {LONGEST_NAME} characters.")

    return name
