"""`python -m memeval lint RUN ...`: problems that would make a run look better than it is."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from memeval.api.selecting import select_runs
from memeval.cli.claims import fold
from memeval.cli.finished_data import DATA, find_cases
from memeval.cli.parser import Parser, print_json
from memeval.comparison.finding import check_records
from memeval.datasets.lint.bounds import is_comparable, scores
from memeval.datasets.lint.check import lint_run
from memeval.datasets.lint.records import Finding, Lint, LintedRun, Rival, SentPrompt
from memeval.errors import UserError
from memeval.results import RECORDS_FILE, Record, RunSummary, read_records
from memeval.results.fields import as_plain
from memeval.results.files import reading
from memeval.results.run import Run
from memeval.results.summary import PACKAGE_RUN
from memeval.text.shown import counted, one_line, some_of

SHOWN = 8
"""Maximum questions that a finding lists; `--json` lists all."""
LARGEST_FILE = 1_000_000
"""Maximum number of characters that are searched in a user's own file."""
_FILES = ("prompt.file", "judge.prompt_file")
_NOT_TEXT = ("dataset", "llm.base_url", "llm.model")

USAGE = f"""
searches finished runs for leaked gold answers, a top_k that retrieves everything, a judge that saw
more than it should, and tuning on the test questions

runs+ RUN       key, its beginning, name, MLflow run id, or filter
{DATA}
--prompt* FILE  your own prompt file to search for gold answers; may be given several times
--json          print everything as JSON
"""
PARSER = Parser.of("lint", USAGE)


def lint(arguments: Sequence[str]) -> int:
    """Prints the findings in each run. Exit status 1 if there are any."""
    options = PARSER.parse_args(list(arguments))
    selection = select_runs(options.runs)
    results = []
    for run in selection.chosen:
        check_records(run)
        material = collect_run(run, selection.known, options.data, options.prompt)
        results.append((run, lint_run(material)))

    if options.json:
        content = [
            {"run_key": run.key, "name": run.name, **as_plain(result)} for run, result in results
        ]
        print_json(content)
    else:
        for run, result in results:
            for line in lines(run, result):
                print(line)

    return int(any(result.findings for _, result in results))


def lines(run: Run, result: Lint) -> Iterator[str]:
    outcome = "nothing found"
    if result.findings:
        outcome = counted(len(result.findings), "finding")

    yield f"{run.key}  {one_line(run.name)}: {outcome}"
    for finding in (*result.findings, *result.remarks):
        yield from finding_lines(finding)

    for text in result.unchecked:
        yield from fold("not checked", one_line(text))


def finding_lines(finding: Finding) -> Iterator[str]:
    """A finding: its name, its location, why it matters, and its questions."""
    yield from fold(finding.kind, one_line(finding.what))
    yield from fold("  where", one_line(finding.where))
    yield from fold("  why", one_line(finding.why, 400))
    shown = some_of(list(map(one_line, finding.questions)), SHOWN)
    yield from fold(f"  questions ({len(finding.questions):,})", shown)


def collect_run(
    run: Run, known: Sequence[Run], data: str | None, files: Sequence[str]
) -> LintedRun:
    """Collects all information about a run on this machine."""
    records = run.read_records()
    case_ids = {record.case_id for record in records}
    cases, why = find_cases(run, case_ids, data)
    siblings, rivals = others_of(run, known)
    return LintedRun(
        summary=run.summary,
        records=records,
        prompts=prompts_of(run, records),
        cases=cases,
        missing=(*([why] if why else []), *unopened_files(run.summary, files)),
        memories=memories_of(run),
        settings=settings_of(run.summary, files),
        siblings=siblings,
        rivals=rivals,
    )


def prompts_of(run: Run, records: Sequence[Record]) -> dict[tuple[str, int], SentPrompt]:
    """Prompts sent to the reader whose texts are available."""
    prompts = {}
    for record in records:
        texts = run.texts_of(record)
        if texts is None:
            continue

        messages = [texts.get(message.text) for message in record.prompt]
        prompts[record.question_id, record.repeat] = SentPrompt(
            messages=tuple(text for text in messages if text is not None),
            context=texts.get(record.context),
        )

    return prompts


def memories_of(run: Run) -> dict[str, list[str]]:
    """Available texts that the memories of each case extracted or wrote."""
    memories: dict[str, list[str]] = {}
    with suppress(UserError):
        for origin, items in run.read_dumps():
            texts = memories.setdefault(origin["case_id"], [])
            texts += [item["text"] for item in items if isinstance(item.get("text"), str)]

    return memories


def settings_of(summary: RunSummary, prompts: Sequence[str]) -> dict[str, str]:
    """Settings that are strings, and the contents of the prompt files that the user names.

    Raises `UserError` for a file that can't be read.
    """
    texts = {
        name: value
        for name, value in summary.params.items()
        if isinstance(value, str) and not name.startswith(_NOT_TEXT)
    }
    for path in prompts:
        with reading(f"--prompt {one_line(path)}"):
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            texts[path] = text[:LARGEST_FILE]

    return texts


def unopened_files(summary: RunSummary, prompts: Sequence[str]) -> Iterator[str]:
    """Reports prompt files that a run names but that were not given with `--prompt`."""
    for name in _FILES:
        path = summary.params.get(name)
        if isinstance(path, str) and path not in prompts:
            yield (
                f"{name}={path}: memeval opens no file that a run names; if you trust it:  "
                "--prompt FILE"
            )


def others_of(
    run: Run, known: Sequence[Run]
) -> tuple[list[tuple[RunSummary, frozenset[str]]], list[Rival]]:
    """The other runs on the same data: those of the same system, with the questions that they
    asked, and those that are comparable, with their scores. A copy from a package does not count.
    """
    tested, siblings, rivals = run.summary, [], []
    seen = {tested.tags.get(PACKAGE_RUN, run.key)}
    for other in known:
        summary = other.summary
        original = summary.tags.get(PACKAGE_RUN, other.key)
        if original in seen or summary.data_sha256 != tested.data_sha256:
            continue

        seen.add(original)
        is_sibling = summary.params.get("system") == tested.params.get("system")
        is_rival = summary.valid and is_comparable(tested, summary)
        if not is_sibling and not is_rival:
            continue

        try:
            records = list(read_records(other.folder / RECORDS_FILE))
        except (OSError, ValueError):
            continue

        if is_sibling:
            asked = frozenset(record.question_id for record in records)
            siblings.append((summary, asked))
        if is_rival:
            rivals.append(Rival(summary, scores(records)))

    return siblings, rivals
