"""`python -m memeval init KIND NAME`: writes a package with your own part, or a board's folder."""

import ast
import keyword
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from string import Template

from memeval.cli.parser import Parser
from memeval.config.options import is_available
from memeval.config.plugins import METRIC, PARTS
from memeval.errors import UserError, unknown
from memeval.metrics.registry import metrics
from memeval.results.files import writing
from memeval.text.shown import in_shell, one_line

KINDS = {
    "system": "python -m memeval system={name}",
    "dataset": "python -m memeval dataset={name}",
    "judge": "python -m memeval judge={name}",
    "metric": "python -m memeval",
}
"""Kinds of packages that can be written, with the command that runs each."""
NOUNS = {"system": "memory system", "dataset": "data set"}
"""Kinds with a different name in texts."""
BOARD = "board"
"""The kind for a board: not a part of memeval, but a repository of results."""

_FILES = Path(__file__).with_name("package")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")

USAGE = f"""
writes a package with a memory system, a data set, a judge or a metric: its entry point, the class,
its conformance suite as a test, a README and a workflow; or the folder of a board with its workflow
and rules

what? KIND          what to write: {", ".join([*KINDS, BOARD])} (default: system)
name NAME           name of the package
--kind KIND         the same as KIND
-o --output FOLDER  folder to write (default: NAME)
"""
PARSER = Parser.of("init", USAGE)


def init(arguments: Sequence[str]) -> int:
    """Writes the package, and prints how to install, test and run it."""
    options = PARSER.parse_args(list(arguments))
    kind, name = _kind_and_name(options.what, options.kind, options.name)
    folder = Path(options.output or name)
    if kind == BOARD:
        return _write_board(name, folder)

    module = name.replace("-", "_")
    if keyword.iskeyword(module) or find_spec(module) is not None:
        raise UserError(f"a Python module '{module}' already exists", "choose another name")
    if is_available(kind, module) or (kind == METRIC and module in metrics()):
        raise UserError(f"a {kind} '{module}' already exists", "choose another name")

    values, paths = _values(kind, name, module), _paths(kind, module)
    _check_target(values, paths[f"{module}/{kind}.py"])
    _write(paths, values, folder)
    print(f"{one_line(folder)}: a package with a {values['noun']}, {module}\n")
    print(f"  cd {in_shell(folder)}\n  pip install -e '.[test]'\n  pytest\n  {values['command']}")
    return 0


def _write_board(name: str, folder: Path) -> int:
    paths = {
        "README.md": _FILES / BOARD / "README.md.txt",
        "RULES.md": _FILES / BOARD / "RULES.md.txt",
        ".github/workflows/board.yml": _FILES / BOARD / "workflow.yml.txt",
    }
    _write(paths, {"project": name}, folder)
    packages = folder / "packages"
    with writing(folder):
        packages.mkdir()
        # Git does not keep empty folders.
        (packages / ".gitkeep").touch()

    # No `cd`: outside a checkout the current folder is the home, which has the runs to pack.
    file = in_shell(packages / "FILE.memeval")
    print(f"{one_line(folder)}: a board; its packages go into {one_line(packages)}\n")
    print(f"  python -m memeval pack dataset=demo -o {file} --licence 'CC0 1.0'")
    print(f"  python -m memeval board check {file}")
    print(f"  python -m memeval board {in_shell(packages)} -o site")
    return 0


def _write(paths: Mapping[str, Path], values: Mapping[str, str], folder: Path) -> None:
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{one_line(folder)} exists already", "elsewhere:  --output FOLDER")

        for path, source in paths.items():
            text = Template(source.read_text(encoding="utf-8")).substitute(values)
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def _kind_and_name(what: str | None, kind: str | None, name: str) -> tuple[str, str]:
    """Kind and name of the package, from the arguments. Raises `UserError` for anything else."""
    # With only a kind, the name was forgotten.
    is_kind_alone = what is kind is None and name in (*KINDS, BOARD)
    otherwise = name if is_kind_alone else "system"
    chosen = next((given for given in (what, kind) if given is not None), otherwise)
    if chosen not in (*KINDS, BOARD):
        raise unknown("kind of package", one_line(chosen), (*KINDS, BOARD))

    example = f"for example:  python -m memeval init {chosen} my-{chosen}"
    if is_kind_alone or (what is not None and kind is not None):
        raise UserError("init takes a kind and a name", example)
    if not _NAME.fullmatch(name):
        raise UserError(
            f"'{one_line(name)}' is not a package name: start with a to z; then 0 to 9, - and _ "
            "are allowed, too",
            example,
        )

    return chosen, name


def _values(kind: str, name: str, module: str) -> dict[str, str]:
    # A metric is an object, and the others are classes.
    target = module.upper()
    if kind != METRIC:
        target = "".join(map(str.capitalize, module.split("_")))

    return {
        "project": name,
        "module": module,
        "kind": kind,
        "noun": NOUNS.get(kind, kind),
        "target": target,
        "heading": module.replace("_", " "),
        "points": PARTS[kind],
        "command": KINDS[kind].format(name=module),
    }


def _check_target(values: Mapping[str, str], source: Path) -> None:
    """Raises `UserError` if the class would hide another name of its module, such as an import."""
    text = Template(source.read_text(encoding="utf-8")).substitute(values, target="_")
    names = {getattr(node, "name", "") for node in ast.walk(ast.parse(text))}
    if values["target"] in names:
        text = f"the class {values['target']} would hide another name of its module"
        raise UserError(text, "choose another name")


def _paths(kind: str, module: str) -> dict[str, Path]:
    paths = {
        "pyproject.toml": _FILES / "pyproject.toml.txt",
        "README.md": _FILES / "README.md.txt",
        ".github/workflows/test.yml": _FILES / "workflow.yml.txt",
        f"{module}/__init__.py": _FILES / "init.py.txt",
        f"{module}/{kind}.py": _FILES / kind / "part.py.txt",
        f"tests/test_{module}.py": _FILES / kind / "test.py.txt",
    }
    if kind == "dataset":
        paths[f"{module}/cases.json"] = _FILES / kind / "cases.json.txt"

    return paths
