"""Finds finished runs: by key, name, MLflow run id or folder, and by common properties."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct, field

from memeval.errors import UserError, unknown
from memeval.report.differences import labels
from memeval.report.flags import warning
from memeval.results import RECORDS_FILE, RUN_FILE, RunSummary, read_tracked
from memeval.results.calibration import read_shown_summary
from memeval.results.files import file_digest, reading
from memeval.results.run import MADE_AGAIN, Run
from memeval.results.summary import IMPORTED_RUNS, OWN_TAG, PACKAGE_TAG, as_yaml
from memeval.text.shown import in_shell, one_line, some_of

_AGE = re.compile(r"(?P<count>\d{1,6})(?P<unit>[smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LAST, PREVIOUS, BY_LABEL = "@last", "@previous", "@label:"
LIST_HINT = "all runs of this home:  python -m memeval list"
MAKE_HINT = "this home has no finished runs; to make one:  python -m memeval dataset=demo"
FILTER_HINT = "use:  dataset=locomo since=7d"
_WARNINGS = (" INVALID", " STOPPED")
"""Warnings that `list` may print after the label of a run."""


class Filters(Struct, frozen=True):
    """Conditions on a run; unset ones match every run. A value may be a comma-separated list."""

    sweep: str | None = None
    dataset: str | None = None
    packages: tuple[str, ...] = ("",)
    """Beginnings of the ids of packages."""
    since: datetime | None = None
    """Finished at this time or later."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Values of settings by dotted name, as YAML writes them."""

    def match(self, run: Run) -> bool:
        summary = run.summary
        if self.sweep is not None and summary.sweep not in self.sweep.split(","):
            return False
        # A user's file has its own name, and the option `json`: it is found by both.
        names = {summary.dataset, str(summary.params.get("dataset", summary.dataset))}
        if self.dataset is not None and names.isdisjoint(self.dataset.split(",")):
            return False
        if not summary.tags.get(PACKAGE_TAG, "").startswith(self.packages):
            return False
        if self.since is not None and summary.ended < self.since:
            return False

        for name, value in self.settings.items():
            # A user's tag (`tags.version`) is named like a setting.
            has: str | None = None
            if name.startswith(OWN_TAG):
                has = summary.tags.get(name)
            elif name in summary.params:
                has = as_yaml(summary.params[name])

            if has not in (value, *value.split(",")):
                return False

        return True


def run_folders(runs: Path) -> list[Path]:
    """The run folders of a home, by name: those below `runs`, then those of unpacked packages."""
    folders: list[Path] = []
    for parent in (runs, *sorted(runs.parent.glob(f"{IMPORTED_RUNS}/[!.]*/runs"))):
        if parent.is_dir():
            folders += sorted(filter(Path.is_dir, parent.iterdir()))

    return folders


def run_folder(word: str, runs: Path) -> Path:
    """The folder of a run, damaged or not, by a key, the beginning of a key, or a path; for a
    readable run, by any word that `named_run` accepts.

    Raises `UserError` if none or several match.
    """
    folders = {folder.name: folder for folder in run_folders(runs)}
    if word in folders:
        return folders[word]

    keys = [name for name in folders if word and name.startswith(word)]
    if len(keys) == 1:
        return folders[keys[0]]
    if keys:
        shown = some_of(keys, 5)
        raise UserError(f"{len(keys)} run keys begin with '{one_line(word)}': {shown}", LIST_HINT)

    # A word that is too long for a path, or contains a NUL, is not a path.
    with suppress(OSError, ValueError):
        if word and Path(word).is_dir():
            return Path(word)

    return named_run(word, finished_runs(runs)).folder


def read_run(folder: Path, say: Callable[[str], None] = lambda _: None) -> Run | None:
    """The run in a folder; None without one, or if it is damaged: then `say` gets a message."""
    try:
        summary = read_shown_summary(folder)
    except FileNotFoundError:
        return None  # a run that is under way, or was killed
    except OSError as error:
        reason = f"{folder / RUN_FILE} can't be read: {error.strerror or error}"
    except ValueError as error:
        reason = one_line(error, 300)
    else:
        return Run(folder, summary)

    say(f"{reason}; the run is left out: repeat its command, which recreates it from its rows")
    return None


def finished_runs(runs: Path, say: Callable[[str], None] = lambda _: None) -> list[Run]:
    """All readable runs below `runs`, and those that came in packages, oldest first; `say` gets a
    message for each damaged run.
    """
    readable = filter(None, [read_run(folder, say) for folder in run_folders(runs)])
    return sorted(readable, key=lambda run: (run.summary.ended, run.key))


def parse_filters(words: Sequence[str], known: Sequence[Run]) -> Filters:
    """Filters from words such as `sweep=baselines`, `dataset=locomo`, `since=7d`, `system=bm25`.

    Raises `UserError` for a word that is not `name=value`, and for a setting that no run has.
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise UserError(f"'{one_line(word)}' is not a filter", FILTER_HINT)

        name = name.removesuffix(".name")
        values[name] = f"{values[name]},{value}" if name in values else value

    sweep, dataset = values.pop("sweep", None), values.pop("dataset", None)
    # An empty id would be the beginning of every other one.
    packages = tuple(values.pop("package", "").strip(",").split(","))
    since = earliest_time(values.pop("since", None))
    settings, tags = {"sweep", "dataset", "package", "since"}, set[str]()
    for run in known:
        settings.update(run.summary.params)
        tags.update(name for name in run.summary.tags if name.startswith(OWN_TAG))

    for name in values:
        kind, names = ("tag", tags) if name.startswith(OWN_TAG) else ("filter", settings)
        if name not in names:
            raise unknown(kind, one_line(name), map(one_line, names), FILTER_HINT)

    return Filters(sweep=sweep, dataset=dataset, packages=packages, since=since, settings=values)


def named_run(word: str, known: Sequence[Run]) -> Run:
    """The run that a word names: a key or its beginning, a name, an MLflow run id, a folder, its
    label in `list`, the beginning of a name or a label; `@last`, `@previous` or `@label:v1`.

    Raises `UserError` with the nearest names if no run matches, and with the newest of several that
    match.
    """
    if word in (LAST, PREVIOUS):
        return _recent_run(word, known)

    matching = (
        [run for run in known if word in _references(run)]
        or _with_key(word, known)
        # A key counts before a name: a user’s run may have the key of another one as its name.
        or [run for run in known if run.name == word]
        or [run for run in known if word in read_tracked(run.folder).values()]
        or _run_at(word)
        or _runs_labelled(word, known)
    )
    if len(matching) == 1:
        return matching[0]
    if not matching:
        hint = LIST_HINT if known else MAKE_HINT
        if any(run.summary.sweep == word for run in known):
            hint = f"it is a sweep:  sweep={word}"
        if known and word.startswith("@"):
            hint = f"use:  {LAST}, {PREVIOUS}, or {BY_LABEL}NAME for a run made with label=NAME"

        raise UserError(f"unknown run '{one_line(word)}'.{_suggestion(word, known)}", hint)

    # The newest first.
    shown = some_of(list(map(_key_and_name, reversed(matching))), 5)
    raise UserError(f"{len(matching)} runs are named '{one_line(word)}': {shown}", LIST_HINT)


def _with_key(word: str, known: Sequence[Run]) -> list[Run]:
    """The run with a key, or otherwise those whose key begins with a word."""
    exact = [run for run in known if run.key == word]
    return exact or [run for run in known if word and run.key.startswith(word)]


def _key_and_name(run: Run) -> str:
    return f"{run.key} ({one_line(run.name, 60)})"


def _references(run: Run) -> list[str]:
    """`@label:v1`, if the run has a label."""
    label = run.summary.params.get("label")
    return [f"{BY_LABEL}{label}"] if label else []


def _recent_run(word: str, known: Sequence[Run]) -> Run:
    """The run that `@last` or `@previous` (the newest one before it with the same data set and
    system) refers to. Raises `UserError` if there is none.
    """
    if not known:
        raise UserError(f"unknown run '{word}'.", MAKE_HINT)

    last = known[-1].summary
    if word == LAST:
        return known[-1]

    for run in reversed(known[:-1]):
        is_same_system = run.summary.params.get("system") == last.params.get("system")
        if is_same_system and run.summary.dataset == last.dataset:
            return run

    raise UserError(
        f"{word}: no earlier run has the data set and system of the last run", LIST_HINT
    )


def run_among(word: str, chosen: Sequence[Run]) -> Run | None:
    """The run that a word names among a few: by its label, its system, its key, or the beginning of
    one. None if no run matches, or more than one.
    """
    matching = _runs_labelled(word, chosen) or _with_key(word, chosen)
    return matching[0] if len(matching) == 1 else None


def labels_of(known: Sequence[Run]) -> list[str]:
    """The label of each run, as `list` prints it if it lists all of them."""
    return labels([run.summary for run in known])


def shown_label(label: str, summary: RunSummary) -> str:
    """A label as `list` prints it, followed by a warning if the run can't be trusted."""
    return " ".join([label, *warning(summary)])


def without_warning(word: str) -> str:
    """A label without the warning that `list` prints after it."""
    for mark in _WARNINGS:
        word = word.removesuffix(mark)

    return word


def _runs_labelled(word: str, known: Sequence[Run]) -> list[Run]:
    """The runs with the word as their label; if there are none, as their system; if there are none,
    as the beginning of their label or name.
    """
    wanted = without_warning(word).strip()
    if not wanted:
        return []

    equal, of_system, beginning = [], [], []
    for run, label in zip(known, labels_of(known), strict=True):
        if label == wanted:
            equal.append(run)
        if run.summary.params.get("system") == wanted:
            of_system.append(run)
        if label.startswith(wanted) or run.name.startswith(wanted):
            beginning.append(run)

    return equal or of_system or beginning


def _suggestion(word: str, known: Sequence[Run]) -> str:
    """The runs whose key, name or system is most similar to a word, as the end of a sentence."""
    shown: dict[str, str] = {}
    for run in known:
        system = str(run.summary.params.get("system", ""))
        names = (run.key, run.name, system, *_references(run))
        shown |= dict.fromkeys(names, _key_and_name(run))

    # Similarity misses a short word within a long name.
    holding = [name for name in shown if word.strip() and word.strip() in name]
    near = [*holding, *get_close_matches(word, shown, n=3, cutoff=0.5)]
    suggestions = list(dict.fromkeys(map(shown.__getitem__, near)))[:3]
    return f" Did you mean: {', '.join(suggestions)}?" if suggestions else ""


def earliest_time(since: datetime | timedelta | str | None) -> datetime | None:
    """The earliest time at which a run counts, with a time zone.

    `since` is a time, a span of time before now, or such a span as a string: `7d`, `12h`. Raises
    `UserError` for a string that is not a span.
    """
    if since is None:
        return None

    if isinstance(since, str):
        age = _AGE.fullmatch(since)
        if age is None:
            raise UserError(
                f"since='{one_line(since)}' is not a span of time",
                "use:  since='7d', '12h' or '30m'",
            )

        since = timedelta(**{_UNITS[age["unit"]]: int(age["count"])})

    # A span of a million weeks begins before the first year that `datetime` has.
    if isinstance(since, timedelta):
        try:
            return datetime.now().astimezone() - since
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)

    # The method of pandas' times needs a time zone.
    return datetime.astimezone(since)


def _run_at(word: str) -> list[Run]:
    """The run in a folder, if the word is its path."""
    run = read_run(Path(word)) if word else None
    return list(filter(None, [run]))


def check_records(*runs: Run) -> None:
    """Raises `UserError` if the records of one of the runs were changed."""
    for run in runs:
        path = run.folder / RECORDS_FILE
        with reading(path, MADE_AGAIN):
            is_whole = file_digest(path) == run.summary.files.get(RECORDS_FILE)

        if not is_whole:
            raise UserError(
                f"{path} is damaged or was edited",
                f"to see more:  python -m memeval verify {in_shell(run.folder)}",
            )


def usual_metric(summaries: Sequence[RunSummary]) -> str:
    """Metric for comparing runs: recall if nothing was answered, otherwise accuracy."""
    if not all(summary.only_retrieves for summary in summaries):
        return "accuracy"

    for summary in summaries:
        # A reader who is shown three chunks has no recall@10.
        if summary.metrics.get("recall_at_10") is None:
            return "recall_shown"

    return "recall_at_10"
