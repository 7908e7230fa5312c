"""The settings that distinguish the cells of a table, and short names for the cells."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from memeval.results import RunSummary
from memeval.results.summary import as_yaml
from memeval.text.shown import one_line

GROUPS = tuple(
    "dataset system label reader writer granularity top_k context_tokens compression_turn judge "
    "prompt llm embedder reranker".split()
)
"""Groups of settings in the order in which tables show them."""

LONGEST_LABEL = 120
"""Maximum length of a label in a picture, in characters."""
LABEL = "label"
"""The setting that names a version of a system."""
IMPORTED_FILE = "system.file"
"""The setting with the file of answers from another program."""
MAX_SETTINGS = 6
"""Up to this number of settings, labels name all; beyond it, only options and unusual values."""
WITH_ABSENT_SETTINGS = ("dataset", "system")
"""Groups with settings that a cell has only if they were set, such as a data set's canaries."""
UNNAMED = {"num_runs", "seed"}
"""Settings that labels leave out: they affect how often a cell was measured, not its
configuration."""


def differing_settings(summaries: Sequence[RunSummary]) -> dict[str, str]:
    """The settings that take more than one value over the cells, and the short header of each.

    For a setting that only some cells have, only their values count: one system's own settings
    don't become columns for all, unless other cells of that system lack it. Within a group, a
    setting that follows from a chosen one (a system's class, next to its name) is left out.
    """
    keys: set[str] = set()
    for summary in summaries:
        keys.update(summary.params)

    chosen: list[str] = []
    for key in sorted(keys, key=rank):
        values = {summary.params[key] for summary in summaries if key in summary.params}
        if len(values) < 2 and not _some_lack(key, summaries):
            continue

        # Only within a group: in a small sweep any setting may depend on any other by chance.
        of_group = [other for other in chosen if group(other) == group(key)]
        if not any(follows(key, other, summaries) for other in of_group):
            chosen.append(key)

    return {key: header(key, chosen) for key in chosen}


def _some_lack(key: str, summaries: Sequence[RunSummary]) -> bool:
    """Whether some cells of one system, or of one data set, have the setting, and others don't."""
    option = "system" if key == LABEL else group(key)
    if option not in WITH_ABSENT_SETTINGS:
        return False

    having, lacking = set(), set()
    for summary in summaries:
        if key in summary.params:
            having.add(summary.params.get(option))
        else:
            lacking.add(summary.params.get(option))

    return not having.isdisjoint(lacking)


def labels(summaries: Sequence[RunSummary], *, apart: bool = True) -> list[str]:
    """A short name per cell: the system, then the other differences; `apart` adds seed or time to
    equal names.

    If nothing differs, it is the run's own name. If many settings differ, as over all runs of a
    home, a setting that does not name an option is included only if most runs have another value.
    """
    columns = differing_settings(summaries)
    keys = [key for key in columns if key not in UNNAMED]
    usual: dict[str, str] = {}
    if len(keys) > MAX_SETTINGS:
        keys.sort(key=lambda key: not _names_option(key))
        for key in keys:
            # A setting that some cells lack is always named: nothing else distinguishes these.
            if not _names_option(key) and not _some_lack(key, summaries):
                having = [summary for summary in summaries if key in summary.params]
                values = Counter(setting_value(summary, key) for summary in having)
                usual[key] = values.most_common(1)[0][0]

    files = _names_of_files(summaries)
    names = []
    for summary in summaries:
        parts = []
        # A version is meaningless without its system.
        if LABEL in keys and "system" not in keys:
            parts.append(system_of(summary))

        for key in keys:
            value = setting_value(summary, key)
            if key not in summary.params or value == usual.get(key):
                continue

            if key == IMPORTED_FILE:
                parts.append(files[value])
            else:
                parts.append(setting_label(summary, key, columns[key].removeprefix("top_")))

        names.append(one_line(" ".join(parts) or summary.name, LONGEST_LABEL))

    return _extend_equal(names, summaries) if apart else names


def _names_of_files(summaries: Sequence[RunSummary]) -> dict[str, str]:
    """The names of imported files by path, with as many folders as each needs to be unique."""
    parts = {}
    for summary in summaries:
        path = setting_value(summary, IMPORTED_FILE)
        parts[path] = (*PurePath(path).parent.parts, PurePath(path).stem)

    names = {}
    for path, file_parts in parts.items():
        others = set(parts.values()) - {file_parts}
        depth = 1
        while any(other[-depth:] == file_parts[-depth:] for other in others):
            depth += 1

        names[path] = str(PurePath(*file_parts[-depth:]))

    return names


def unique_labels(names: Sequence[str], summaries: Sequence[RunSummary]) -> list[str]:
    """Unique labels: a key is added if two runs ended in the same second."""
    unique = []
    for name, summary in zip(names, summaries, strict=True):
        label = name
        if names.count(name) > 1:
            label += f" {summary.run_key[:6]}"

        unique.append(label)

    return unique


def _extend_equal(names: Sequence[str], summaries: Sequence[RunSummary]) -> list[str]:
    """The names; equal ones are extended by other differences: repeats, seed, or time."""
    alike: dict[str, list[RunSummary]] = {}
    for name, summary in zip(names, summaries, strict=True):
        alike.setdefault(name, []).append(summary)

    extended = []
    for name, summary in zip(names, summaries, strict=True):
        extended.append(" ".join([name, *_distinctions(summary, alike[name])]))

    return extended


def _distinctions(summary: RunSummary, alike: Sequence[RunSummary]) -> list[str]:
    """Settings that distinguish a cell among those of one name."""
    parts, values = [], []
    for key in sorted(UNNAMED):
        column = [setting_value(other, key) for other in alike]
        if len(set(column)) > 1:
            values.append(column)
            parts.append(f"{key}={setting_value(summary, key)}")

    if len(set(zip(*values, strict=True)) or {()}) < len(alike):
        parts.append(f"of {summary.ended:%Y-%m-%d %H:%M:%S}")

    return parts


def _names_option(key: str) -> bool:
    """Whether a setting names the option of a group, such as the system or the data set."""
    return key in GROUPS or key.endswith(".name")


def system_of(summary: RunSummary) -> str:
    """The system of a cell; the cell's name if it has none, such as answers of another program."""
    name = summary.params.get("system")
    return summary.name if name is None else str(name)


def setting_value(summary: RunSummary, key: str) -> str:
    """A setting's value in a table: a dash if the cell has no such setting."""
    return as_yaml(summary.params.get(key, "–"))


def setting_label(summary: RunSummary, key: str, short: str) -> str:
    """A setting in a label: only the value if it is a name, else also the setting's header."""
    value = setting_value(summary, key)
    is_option = key in GROUPS and key != "compression_turn" and not value[:1].isdigit()
    is_name = key.endswith("name") or key == "label" or is_option

    if is_name and value != "null":
        return value

    return f"{short}={value}"


def rank(key: str) -> tuple[int, int, bool, str]:
    """The order of settings: by group, its option first, nested settings last, models before the
    settings that depend on them.
    """
    position = GROUPS.index(group(key)) if group(key) in GROUPS else len(GROUPS)

    return position, key.removesuffix(".name").count("."), not key.endswith(".model"), key


def group(key: str) -> str:
    """The first part of a dotted setting."""
    return key.split(".", maxsplit=1)[0]


def follows(key: str, other: str, summaries: Sequence[RunSummary]) -> bool:
    """Whether one setting's value follows from another's in each of the cells."""
    pairs = {(summary.params.get(other), summary.params.get(key)) for summary in summaries}
    return len(pairs) == len(dict(pairs))


def header(key: str, keys: Sequence[str]) -> str:
    """The shortest ending of a dotted setting that no other setting in the table shares."""
    parts = key.removesuffix(".name").split(".")
    if len(parts) == 1:
        return parts[0]

    endings = [other.split(".")[-1] for other in keys]
    if endings.count(parts[-1]) > 1 or parts[-1] in GROUPS:
        return ".".join(parts[-2:])

    return parts[-1]
