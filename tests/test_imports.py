"""What is imported when: `--help` must not take seconds, nor need any provider's SDK."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import memeval

HEAVY = ("mlflow", "chromadb", "openai", "mem0", "pandas", "hydra", "numpy", "rich")
LOADED = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"


def loaded_by(code: str) -> str:
    """The heavy packages that a fresh interpreter has loaded after it ran `code`, as the last line
    of its output.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\n{LOADED}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_windows_is_refused_before_anything_is_loaded() -> None:
    code = "import sys; sys.platform = 'win32'; import memeval"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stderr.endswith("on Windows, run it in WSL\n")


@pytest.mark.parametrize(
    "code",
    [
        "import memeval",
        "import memeval.cli.run, memeval.runs.cell, memeval.cli.comparison",
        "from memeval.cli.main import run_command; assert run_command(['--help']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['--version']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['data', 'list']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['runn']) == 2",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert loaded_by(code) == "[]"


def test_a_search_in_files_imports_no_pandas() -> None:
    """The first search of a run would take most of a second."""
    code = "from memeval.systems.files.system import has_match; assert has_match('a', ['a'])"
    assert "pandas" not in loaded_by(code)


def test_help_loads_no_event_loop() -> None:
    """Started as from a shell, where Ctrl-C is handled before the arguments are read."""
    code = "import sys; sys.argv[1:] = ['--help']; from memeval.__main__ import main; main()"
    loaded_by(f"{code}\nassert not {{'asyncio', 'omegaconf'}} & sys.modules.keys()")


def test_no_audit_hook_is_installed() -> None:
    """An audit hook is called at each `id()`: copying an object takes three times as long."""
    code = (
        "import sys; hooks = []; sys.addaudithook = hooks.append\n"
        "import filelock, memeval.cli.run, memeval.runs.cell, memeval.llm.openai\n"
        "filelock.FileLock('unused').release(); assert hooks == [], hooks"
    )
    loaded_by(code)


@pytest.mark.slow
def test_sweep_loads_no_template_engine_because_another_process_writes_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = ["-m", "system=bm25,no_memory", "dataset=demo", "dataset.limit_questions=2"]
    code = (
        "import sys; from memeval.cli.main import run_command;"
        f"assert run_command({words} + ['tracking=none', 'plots=true']) == 0;"
        "assert 'jinja2' not in sys.modules"
    )
    loaded_by(code)
    assert len(list(tmp_path.glob("outputs/runs/*/report.html"))) == 2


def test_loaded_by_detects_an_import() -> None:
    assert loaded_by("import rich") == "['rich']"


ROOT = Path(memeval.__file__).parents[1]
NAMES = {"hydra": "hydra-core", "yaml": "pyyaml", "mem0": "mem0ai"}
"""Packages whose import name differs from their distribution name."""
PRIVATE = {
    # Documented, despite their names.
    "_exit",
    "_current_frames",
    # A process that a hung call would keep from ending exits by `os._exit`, which runs no exit
    # functions. No public function runs those of other libraries.
    "_run_exitfuncs",
    # Hydra's own example of a config source calls it, too.
    "_get_header_dict",
}
"""Private names of other packages that are still used. Don't add any."""


@cache
def parsed() -> Mapping[Path, tuple[ast.AST, ...]]:
    """The syntax nodes of each module of memeval."""
    return {
        path: tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for path in sorted((ROOT / "memeval").rglob("*.py"))
    }


def imported() -> Iterator[tuple[str, Path]]:
    """The modules of other packages that memeval imports, each with the importing file."""
    for path, nodes in parsed().items():
        for node in nodes:
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]

            for module in modules:
                package = module.partition(".")[0]
                if package not in {*sys.stdlib_module_names, "memeval"}:
                    yield module, path


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [words for name, words in project["optional-dependencies"].items() if name != "dev"]
    declared = {
        re.split(r"[<>=!\[]", requirement)[0].lower()
        for requirements in (project["dependencies"], *extras)
        for requirement in requirements
    }
    undeclared = {
        str(path.relative_to(ROOT)): module
        for module, path in imported()
        if NAMES.get(package := module.partition(".")[0], package.replace("_", "-")) not in declared
    }
    assert undeclared == {}


def test_no_private_module_of_another_package_is_imported() -> None:
    private = {module for module, _ in imported() if re.search(r"\._[a-z]", module)}
    assert private == set()


def test_no_private_name_of_another_package_is_used() -> None:
    """A private attribute that memeval defines nowhere belongs to another package."""
    defined: set[str] = set()
    used: set[str] = set()
    for nodes in parsed().values():
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                defined.add(node.attr)
            elif isinstance(node, ast.Attribute) and re.match("_[a-zA-Z]", node.attr):
                used.add(node.attr)

    assert used - defined == PRIVATE


def test_launchers_are_found_by_hydras_plugin_search() -> None:
    """They are found without manual registration, and nothing else is in that namespace."""
    code = (
        "from hydra.core.plugins import Plugins; from hydra.plugins.launcher import Launcher;"
        "print(sorted(found.__name__ for found in Plugins.instance().discover(Launcher)"
        " if found.__module__ == 'hydra_plugins.memeval'))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "['RayLauncher', 'SweepLauncher']"
    assert [path.name for path in (ROOT / "hydra_plugins").glob("*.py")] == ["memeval.py"]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    targets = build["build"]["targets"]
    assert "hydra_plugins" in targets["wheel"]["packages"]
    assert "/hydra_plugins" in targets["sdist"]["include"]


def test_imports_between_modules_have_no_cycle() -> None:
    """Imports for type checking and inside of functions count."""
    graph = grimp.build_graph("memeval", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    # Raises `CycleError`, which names the modules in the cycle.
    TopologicalSorter(imports).prepare()


def test_missing_packages_of_an_interpreter_are_reported() -> None:
    root = Path(memeval.__file__).parents[1]
    without_packages = [sys.executable, "-S", "-m", "memeval", "system=bm25"]
    done = subprocess.run(
        without_packages, cwd=root, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 2
    assert re.match(r"memeval: the package '\w+' is not installed for /", done.stderr)
    assert "make install" in done.stderr and "Traceback" not in done.stderr
