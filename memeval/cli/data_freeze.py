"""`python -m memeval data freeze | diff | merge | power`: versions of your own data."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memeval.api.overrides import as_word
from memeval.cli.plan_text import asked_counts, outlook_line
from memeval.config.paths import data_dir, outputs_dir
from memeval.datasets.json.agreement import agreement_text, review_agreement
from memeval.datasets.json.document import dropped_counts
from memeval.datasets.json.frozen import (
    DATA_FILE,
    SHEET_FILE,
    FrozenContent,
    FrozenManifest,
    case_id_of,
    data_file,
    is_frozen,
    read_checked,
    read_manifest,
    split_cases,
    write_frozen,
)
from memeval.datasets.json.reader import ACCEPTED, DRAFTED, REJECTED, OwnReader
from memeval.datasets.json.review import decisions
from memeval.datasets.json.versions import changes_between, merge
from memeval.datasets.locate import FROZEN
from memeval.errors import UserError
from memeval.metrics.formats import percent
from memeval.results.files import file_digest
from memeval.runs.forecast.outlook import Outlook, outlook_for
from memeval.text.shipped import location_of
from memeval.text.shown import all_counted, counted, in_shell, one_line

MAX_SHOWN = 20
"""Maximum names of a change that are printed; the others are counted."""
MORE = 2
"""The factor by which `power` increases the cases, or the questions per case."""


def freeze(chosen: Namespace) -> int:
    """Writes a version of a file: data, manifest and datasheet, without rejected questions and
    without drafts that were not accepted.
    """
    source = _resolve_path(chosen.file)
    reader, written = read_checked(source)
    _check_questions(reader.counts["questions"], source)
    # Questions that a person wrote, and accepted ones.
    cases = [_with_status(case, None, ACCEPTED) for case in written]
    if not any(case["questions"] for case in cases):
        raise UserError(
            f"no question of {source} was accepted.",
            f"review them:  python -m memeval data review {in_shell(source)}",
        )

    name, licence = chosen.name or reader.name, chosen.licence or ""
    sides = _sides(cases, chosen.split)
    facts = {}
    if is_frozen(source):
        earlier = read_manifest(source)
        licence = licence or earlier.licence
        sides = sides or earlier.sides
    else:
        facts = _facts(reader, written)

    content = FrozenContent(
        name=name,
        version=chosen.version,
        cases=cases,
        sources=[f"{source.name} sha256 {file_digest(data_file(source))}"],
        licence=licence,
        sides=sides,
        facts=facts,
    )
    for title, fact in facts.items():
        print(f"{title}: {one_line(fact, 1000)}")

    return _write(content, _target(chosen.into, name, chosen.version))


def merge_files(chosen: Namespace) -> int:
    """Writes frozen data sets as one data set."""
    paths = list(map(_resolve_path, chosen.files))
    cases, sides, manifests = merge(paths, keeps_split=chosen.split is None)
    sources = [f"{source.name} {source.version} sha256 {source.sha256}" for source in manifests]
    content = FrozenContent(
        name=chosen.name,
        version=chosen.version,
        cases=cases,
        sources=sources,
        licence=chosen.licence or _licence_of(manifests),
        sides=_sides(cases, chosen.split) or sides,
    )
    shared = sum(manifest.counts["cases"] for manifest in manifests) - len(cases)
    if shared:
        print(f"left out: {counted(shared, 'case')} with the same content in an earlier set")

    return _write(content, _target(chosen.into, chosen.name, chosen.version))


def diff(chosen: Namespace) -> int:
    """Prints the changes from one version to another; exit status 1 if there are any."""
    old, new = _resolve_path(chosen.old), _resolve_path(chosen.new)
    changes = changes_between(read_checked(old)[1], read_checked(new)[1])
    for heading, names in changes.lists.items():
        if names:
            print(heading)

        for name in names[:MAX_SHOWN]:
            print(f"  {one_line(name)}")
        if len(names) > MAX_SHOWN:
            print(f"  and {len(names) - MAX_SHOWN:,} more")

    print(counted(changes.questions_same, "question is the same", "questions are the same"))
    return int(not changes.is_empty)


def power(chosen: Namespace) -> int:
    """Prints the smallest difference that the data could show, and that of more data."""
    path = _resolve_path(chosen.file)
    reader, written = read_checked(path)
    cases = [_with_status(case, None, ACCEPTED, DRAFTED) for case in written]
    count, questions = asked_counts(cases)
    _check_questions(questions, path)

    name, runs = reader.name, outputs_dir() / "runs"
    now = outlook_for(name, questions=questions, cases=count, runs=runs)
    more_cases = outlook_for(
        name,
        questions=MORE * questions,
        cases=MORE * count,
        runs=runs,
        design_effect=now.design_effect,
    )
    more_questions = outlook_for(
        name, questions=MORE * questions, cases=count, runs=runs, design_effect=_larger_effect(now)
    )
    print(outlook_line(now))
    print(f"  with {MORE * count:,} such cases: {_difference(more_cases)}")
    print(f"  with {MORE * questions:,} questions about these cases: {_difference(more_questions)}")
    if drafted := reader.statuses[DRAFTED]:
        print(f"  {drafted:,} of the questions are drafts: a run asks them once they are accepted")

    return 0


def _larger_effect(outlook: Outlook) -> float | None:
    """The design effect of `MORE` times the questions in the same cases.

    1 + (m - 1) ρ for m questions per case, if their correlation ρ stays the same. None with one
    question per case, from which ρ can't be estimated.

    Source: Kish, Survey Sampling (1965).
    """
    a_case = outlook.questions / outlook.cases
    if a_case <= 1:
        return None

    correlation = (outlook.design_effect - 1) / (a_case - 1)
    return 1 + (MORE * a_case - 1) * correlation


def _difference(outlook: Outlook) -> str:
    if outlook.difference is None:
        return "too few cases to show any difference"

    return f"a difference of {percent(outlook.difference)} points"


def _check_questions(count: int, path: Path) -> None:
    if not count:
        raise UserError(
            f"{path} has no questions to ask.",
            f"write questions, or import a table of them:  {location_of('docs/own_data.md')}",
        )


def _with_status(case: dict[str, Any], *statuses: str | None) -> dict[str, Any]:
    kept = [asked for asked in case["questions"] if asked.get("status") in statuses]
    return {**case, "questions": kept}


def _facts(reader: OwnReader, cases: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Facts in the datasheet about dropped drafts and about a review."""
    facts = {}
    dropped = dropped_counts(reader.header)
    if dropped:
        counts = "; ".join(f"{why} {count:,}" for why, count in dropped.most_common())
        facts["Dropped drafts"] = f"{dropped.total():,}: {counts}"

    left = []
    # Questions that reviewers disagree on also have the status drafted.
    for status, word in ((REJECTED, "rejected"), (DRAFTED, "undecided")):
        if count := reader.statuses[status]:
            left.append(f"{count:,} {word}")

    if left:
        facts["Left out by the review"] = ", ".join(left)

    # Edited by hand: `data review` would have changed the status.
    edited = 0
    for case in cases:
        for question in case["questions"]:
            if question.get("status") == ACCEPTED and question.get("reviews"):
                edited += ACCEPTED not in decisions(question).values()

    if edited:
        facts["Edited since they were accepted"] = counted(edited, "question")

    agreement = review_agreement(cases)
    if agreement.pairs:
        facts["Agreement of the reviewers"] = "; ".join(map(agreement_text, agreement.pairs))

    return facts


def _licence_of(manifests: Sequence[FrozenManifest]) -> str:
    """The licence of frozen data sets; the licence of each if they differ."""
    licences = {manifest.licence for manifest in manifests}
    if len(licences) < 2:
        return "".join(licences)

    stated = [
        f"{frozen.name} {frozen.version}: {frozen.licence or 'not stated'}" for frozen in manifests
    ]
    return "; ".join(stated)


def _sides(cases: Sequence[dict[str, Any]], share: float | None) -> dict[str, str]:
    if share is None:
        return {}

    return split_cases([case_id_of(case) for case in cases if case["questions"]], share)


def _target(into: str | None, name: str, version: str) -> Path:
    """The folder to write: `into`, or else one below the data folder, where it is found by name."""
    if into is not None:
        return Path(into)
    if not name.replace("-", "").replace("_", "").replace(" ", "").isalnum():
        raise UserError(f"'{one_line(name)}' can't be the name of a folder.", "use:  --into FOLDER")

    return data_dir() / FROZEN / f"{name}@{version}"


def _resolve_path(word: str) -> Path:
    """A file or folder, or the folder of a frozen data set below the data folder."""
    path, named = Path(word), data_dir() / FROZEN / word
    if not path.exists() and is_frozen(named):
        return named

    return path


def _write(content: FrozenContent, folder: Path) -> int:
    parts: dict[str, list[Any]] = {content.name: list(content.cases)}
    for case in content.cases:
        # A case without a question is on neither side.
        if side := content.sides.get(case_id_of(case)):
            parts.setdefault(f"dataset.split={side}", []).append(case)

    lines = []
    for name, cases in sorted(parts.items(), key=lambda part: -len(part[1])):
        count, questions = asked_counts(cases)
        lines.append(outlook_line(outlook_for(name, questions=questions, cases=count)))

    manifest = write_frozen(content, folder, more=lines)
    counts = all_counted(manifest.counts)
    print(f"{folder}: {one_line(manifest.name)} version {manifest.version}, {counts}")
    print(f"  sha256 {manifest.sha256}, in {DATA_FILE}; {SHEET_FILE} describes it")
    for line in lines:
        print(f"  {line}")

    read_manifest(folder)
    inside = folder.parent == data_dir() / FROZEN
    shown = folder.name if inside else folder
    print(f"run it:  python -m memeval dataset=json {as_word('dataset.path', shown)}")
    return 0
