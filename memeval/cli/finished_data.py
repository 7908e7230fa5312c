"""The data set of a finished run, for the commands that read one.

A run folder may come from anyone. Therefore nothing that its `config.yaml` names is imported or
opened: the data set is looked up by name among the built-in ones and the frozen ones in the data
folder, or read from a file that the user names.
"""

from pathlib import Path
from typing import Any

from memeval.config.paths import data_dir
from memeval.datasets.contract import Dataset
from memeval.datasets.locate import FROZEN
from memeval.errors import MemevalError, UserError
from memeval.records import EvalCase
from memeval.results import CONFIG_FILE
from memeval.results.files import reading
from memeval.results.run import Run
from memeval.text.shown import one_line

DATA = """
--data FILE:data  the run's data file, if it is your own: memeval opens no file that a run names
""".strip()


def find_cases(
    run: Run, wanted: set[str], data: str | None
) -> tuple[dict[str, EvalCase] | None, str]:
    """The cases of a run with these ids, from its data set's own file or from the file `data`; or
    None, and what is missing.
    """
    try:
        return {case.case_id: case for case in _read_cases(run, wanted, data)}, ""
    except UserError as error:
        return None, error.line


def _read_cases(run: Run, wanted: set[str], data: str | None) -> list[EvalCase]:
    name = str(run.summary.params.get("dataset", "")) or "unknown"
    try:
        dataset = _dataset(run, data)
        opened = dataset.load()
        cases = [case for case in dataset.read() if case.case_id in wanted]
    except UserError:
        raise
    except (MemevalError, OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"data set '{one_line(name)}' can't be read: {one_line(error)}") from error

    # Another file may have different texts under the same ids.
    if opened.sha256 != run.summary.data_sha256:
        raise UserError(
            "the data file is not the one that the run used", "to use another:  --data FILE"
        )

    return cases


def _dataset(run: Run, data: str | None) -> Dataset:
    from memeval.config.options import built_in_classes
    from memeval.datasets.json.frozen import is_frozen
    from memeval.datasets.locate import build

    settings = _settings(run)
    name, path = str(settings.pop("name", None)), str(settings.pop("path", None) or "")
    named_class = settings.pop("class", None)
    own_class = built_in_classes("dataset").get(name)
    if own_class is None or named_class not in (None, own_class):
        raise UserError(
            f"data set '{one_line(name)}' is not one of memeval's own, and memeval imports no "
            "other class to read a run"
        )

    if path and data is None:
        # The name of a frozen data set in the user's data folder.
        folder = data_dir() / FROZEN / path
        if path != Path(path).name or path == ".." or not is_frozen(folder):
            raise UserError(
                f"the run used the data file {one_line(path)}, but memeval opens no file that a "
                "run names",
                "if you trust the file:  --data FILE",
            )

        data = str(folder)

    return build(name, data_dir(), **settings, path=data)


def _settings(run: Run) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    path = run.folder / CONFIG_FILE
    try:
        with reading(path):
            content: Any = OmegaConf.to_container(OmegaConf.load(path))
    except (OmegaConfBaseException, YAMLError, RecursionError) as error:
        raise ValueError(f"{CONFIG_FILE} can't be read") from error

    return dict(content["dataset"])
