"""Labels of a logged run: the sweeps that include it, and the user's own tags and note.

They are not part of its results: a run keeps them when it is logged again or moved, and a finished
run gets new ones without being logged again.
"""

from collections.abc import Mapping, Sequence

from memeval.config.filing import RESERVED, Filing
from memeval.text.redaction import redacted
from memeval.tracking.payload import NOTE, SWEEP, SWEEP_ID

MAX_SWEEPS = 100
"""Maximum sweeps that a run names; the latest are kept."""


def collect_labels(
    filing: Filing, sweep: str | None, known: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """The labels of a run: those among the tags of its `known` runs, and those requested now."""
    labels: dict[str, str] = {}
    # Labels added on MLflow's page count as well: a run that is replaced keeps them.
    for tags in known:
        labels |= {name: value for name, value in tags.items() if is_own(name)}

    labels |= {name: redacted(value) for name, value in filing.tags.items()}
    if filing.note:
        labels[NOTE] = redacted(filing.note)

    for tag, asked_for_by in ((SWEEP, sweep), (SWEEP_ID, filing.sweep_id)):
        joined = ",".join([*(tags.get(tag, "") for tags in known), asked_for_by or ""])
        names = list(dict.fromkeys(filter(None, joined.split(","))))
        if names:
            labels[tag] = ",".join(names[-MAX_SWEEPS:])

    return labels


def is_own(name: str) -> bool:
    """Whether a tag is the user's own, set on the command line or on MLflow's page."""
    return name == NOTE or name.partition(".")[0].lower() not in RESERVED
