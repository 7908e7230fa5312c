"""`python -m memeval judge probe | calibrate | agree`: tests whether a judge can be trusted."""

from collections.abc import Callable, Sequence

from memeval.cli.main import load
from memeval.errors import UserError, unknown

ACTIONS = {
    "probe": "memeval.cli.judge_probe:probe",
    "calibrate": "memeval.cli.judge_calibrate:calibrate",
    "agree": "memeval.cli.judge_agree:agree_runs",
}
USAGE = """usage: python -m memeval judge ACTION ...

  probe [judge=... llm=...]    how many right and wrong answers a judge accepts
  calibrate RUN --labels FILE  correct a run's accuracy by labels
  agree RUN RUN ...            how far judges agree on the same answers

python -m memeval judge ACTION --help describes one of them"""


def judge(arguments: Sequence[str]) -> int:
    """Runs the action that the first word names."""
    if not arguments:
        raise UserError("judge needs an action", *USAGE.split("\n\n")[1].split("\n"))

    action, rest = arguments[0], arguments[1:]
    if action in ("-h", "--help"):
        print(USAGE)
        return 0

    if action not in ACTIONS:
        raise unknown("action of judge", action, ACTIONS)

    run: Callable[[Sequence[str]], int] = load(ACTIONS[action])
    return run(rest)
