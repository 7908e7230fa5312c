"""A memory that is a program: the documented example, and programs that die, hang or print
noise.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from served_examples import EXAMPLES, QUESTION, Under, asked, program

from memeval.config.settings import read_settings
from memeval.errors import ModelError, UserError
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.execute.ingest import ingest
from memeval.pipeline.open.system_source import SystemSource
from memeval.records import Answer, Query, Retrieved, Role
from memeval.systems.base import NOISE, TRIED_AGAIN, MemorySystem, SystemContext
from memeval.systems.external import program as started
from memeval.systems.external.command import CommandMemory, CommandSettings, Process
from memeval.systems.external.program import PASS_ON, describe_status
from memeval.testing.contract import MemorySystemContract
from memeval.testing.sample import sample_chunks
from memeval.testing.under_test import SystemUnderTest, play

FAULTY = Path(__file__).with_name("faulty_program.py")
LAST_LINE = "; last line of stderr: disk \\x1b[31mfull"


class Program(Under):
    """A program with the given settings, driven as the checks do it."""

    def __init__(self, command: str, **settings: Any) -> None:
        self.settings = read_settings(CommandSettings, {"command": command, **settings})

    def build(self, parts: SystemContext) -> MemorySystem:
        return CommandMemory(self.settings, parts)


@pytest.mark.slow
class TestExample(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Program(program()).build(parts)


def faulty(tmp_path: Path, fault: str, **settings: Any) -> Program:
    words = [sys.executable, "-S", str(FAULTY), fault, str(tmp_path / "mark")]
    return Program(shlex.join(words), **settings)


def test_example_program_answers() -> None:
    answer, ledger = asked(Program(program()))
    assert answer.retrieved is not None and "cedar" in answer.retrieved[0].text
    assert answer.ranking is not None and answer.ranking[0] == ("s2:3",)
    assert ledger.remarks == {}


def test_program_that_dies_is_reported_in_one_line_with_its_last_output(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        asked(faulty(tmp_path, "dies", restarts=0))
    assert str(raised.value) == (
        f"the program '{sys.executable}' ended with status 3 during search; "
        "last line of stderr: Traceback: out of memory"
    )


NODE = """node:internal/modules/esm/resolve:873
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'mem' imported from /srv/server.mjs
    at packageResolve (node:internal/modules/esm/resolve:873:9)
    at async moduleResolve (node:internal/modules/esm/resolve:946:18) {
  code: 'ERR_MODULE_NOT_FOUND',
  [cause]: undefined
}

Node.js v20.20.2
"""
MISSING_MODULE = """Error: Cannot find module 'mem'
Require stack:
- /srv/store.js
    at Module.require (node:internal/modules/cjs/loader:1289:19) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [
    '/srv/store.js'
  ]
}

Node.js v20.20.2
"""
MISSING_ADDON = """Error: Could not locate the bindings file. Tried:
 → /srv/build/sqlite3.node
    at bindings (/srv/bindings.js:126:9) {
  tries: [
    '/srv/build/sqlite3.node'
  ]
}
"""
PYDANTIC = """pydantic_core._pydantic_core.ValidationError: 1 validation error for EmbeddingSettings
  Value error, EMBED_API_BASE is required [type=value_error, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.14/v/value_error
"""


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        pytest.param(NODE, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'mem' ", id="node"),
        pytest.param(MISSING_MODULE, "Error: Cannot find module 'mem'", id="missing module"),
        pytest.param(MISSING_ADDON, "Error: Could not locate the bindings file", id="addon"),
        pytest.param(PYDANTIC, "Value error, EMBED_API_BASE is required ", id="pydantic"),
        pytest.param("no key\n(Use `node --trace`)\n\nNode.js v20.20.2\n", "no key", id="thrown"),
        pytest.param("Node.js v20.20.2\n", "Node.js v20.20.2", id="nothing else"),
    ],
)
def test_the_cause_of_a_crash_is_shown_and_not_what_follows_it(
    tmp_path: Path, stderr: str, cause: str
) -> None:
    (tmp_path / "stderr").write_text(stderr, encoding="utf-8")
    command = shlex.join(["sh", "-c", 'cat "$0" >&2; exit 1', str(tmp_path / "stderr")])
    with pytest.raises(UserError) as raised:
        asked(Program(command, restarts=0))

    assert f"ended with status 1 during reset; last line of stderr: {cause}" in str(raised.value)


def test_program_that_died_is_restarted_and_given_the_case_again(tmp_path: Path) -> None:
    answer, ledger = asked(faulty(tmp_path, "dies once"))
    assert len(answer.retrieved or ()) == 3
    assert "repeated after: it ended with status 3" in ledger.remarks[TRIED_AGAIN]
    assert [usage.prompt_tokens for usage in ledger.usages if usage.role is Role.INGEST] == [7, 7]


def test_program_that_died_is_given_both_users_of_a_shared_store_again(tmp_path: Path) -> None:
    found: list[Retrieved] = []

    async def search(sut: SystemUnderTest) -> None:
        memory = sut.start(sut.model())
        first, second = sample_chunks()[:2]
        said = [replace(first, user="user-2"), replace(second, user="user-1")]
        await ingest(memory, said, (), retain=1)
        found.extend(await memory.call("probe", Query("cedar"), 20))

    asyncio.run(play(search, faulty(tmp_path, "dies once")))
    assert [result.text for result in found] == [chunk.text for chunk in sample_chunks()[:2]]


@pytest.mark.slow
def test_hanging_program_times_out(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"did not reply to search within 3 s"):
        asked(faulty(tmp_path, "hangs", restarts=0, request_timeout_s=3))


def test_reply_that_arrived_while_the_loop_was_blocked_is_read(tmp_path: Path) -> None:
    async def ask() -> Any:
        words = [sys.executable, "-S", str(FAULTY), "none", str(tmp_path / "mark")]
        process = Process(await started.Program.start(words, dict(os.environ), ""))
        try:
            await process.ask("reset", {}, timeout_s=60.0)
            asking = asyncio.create_task(process.ask("search", {"top_k": 1}, timeout_s=0.2))
            await asyncio.sleep(0)
            # As an unresponsive database would block the loop.
            time.sleep(0.5)  # noqa: ASYNC251
            return await asking
        finally:
            await process.program.stop()

    assert asyncio.run(ask()) == {"id": 2, "usage": [], "error": "", "results": []}


def test_other_output_of_a_program_is_skipped_and_noted(tmp_path: Path) -> None:
    answer, ledger = asked(faulty(tmp_path, "noise"))
    assert answer.retrieved
    assert ledger.remarks[NOISE] == "the program wrote 2 lines that are not replies"


def test_reply_without_the_request_id_is_quoted_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        asked(faulty(tmp_path, "forgets the id", restarts=0, request_timeout_s=1))
    assert str(raised.value) == (
        f"the program '{sys.executable}' did not reply to search within 1 s, "
        'but wrote a line without "id": 4: {"id": null, "usage": [], "results": []}'
    )


def test_a_child_that_a_dead_program_left_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="ended with status 3 during search"):
        asked(faulty(tmp_path, "leaves-a-child", restarts=0, request_timeout_s=30))


def environment_of(answer: Answer) -> dict[str, str]:
    assert answer.retrieved is not None
    variables: dict[str, str] = json.loads(answer.retrieved[0].text)
    # Python itself sets this variable in the program.
    variables.pop("LC_CTYPE", None)
    return variables


def test_program_gets_only_variables_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-programs")
    monkeypatch.setenv("MEMORY_TOKEN", "for this one")
    monkeypatch.setenv("LANG", "C.UTF-8")
    settings = {"env": {"DATA": "{case_dir}/{namespace}"}, "environment": ["MEMORY_TOKEN"]}
    variables = environment_of(asked(faulty(tmp_path, "environment", **settings))[0])
    assert set(variables) <= {"HOME", "PATH", "LANG", "TMPDIR", "DATA", "MEMORY_TOKEN"}
    assert (variables["MEMORY_TOKEN"], variables["LANG"]) == ("for this one", "C.UTF-8")
    folder, _, namespace = variables["DATA"].rpartition("/")
    assert namespace.startswith("memeval-") and not Path(folder).exists(), "it went with the case"
    assert variables["HOME"] == os.environ["HOME"], "its data lies in the folder that it was shown"


def test_program_without_a_case_folder_gets_a_temporary_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("npm_config_cache", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    monkeypatch.setenv("UV_CACHE_DIR", "/srv/uv")
    variables = environment_of(asked(faulty(tmp_path, "environment"))[0])
    assert variables["HOME"] != os.environ["HOME"] and not Path(variables["HOME"]).exists()
    assert variables["npm_config_cache"] == f"{os.environ['HOME']}/.npm", "or npx downloads again"
    models = f"{os.environ['HOME']}/.cache/huggingface"
    assert variables["HF_HOME"] == models, "or each case downloads its embedding model again"
    assert variables["UV_CACHE_DIR"] == "/srv/uv", "the user's own folder, if one is set"


def test_program_whose_home_is_the_case_folder_by_a_setting_finds_its_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/scratch/cache")
    memory = faulty(tmp_path, "environment", env={"HOME": "{case_dir}"})
    variables = environment_of(asked(memory)[0])
    assert variables["HOME"] != os.environ["HOME"]
    assert variables["HF_HOME"] == "/scratch/cache/huggingface"
    assert variables["UV_CACHE_DIR"] == "/scratch/cache/uv"


@pytest.mark.parametrize("program", ["no-such-program", "/" + "x" * 300, __file__])
def test_program_that_cannot_run_is_reported_before_any_request(program: str) -> None:
    state = "is not executable" if program == __file__ else "is not on this machine"
    settings = read_settings(CommandSettings, {"command": f"{program} --fast"})
    with pytest.raises(UserError, match=f"the program '.*' {state}"):
        CommandMemory.resolve_settings(settings, has_language_model=False)


def test_missing_script_is_a_user_error() -> None:
    with pytest.raises(
        UserError, match=r"ended with status 2 during reset; last line of stderr: .*such"
    ) as raised:
        asked(Program(f"{sys.executable} no_such_script.py", restarts=0))

    assert raised.value.hints == (PASS_ON,)


def test_error_of_node_is_reported_instead_of_its_version(tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    fields = "  field: ''\n" * 20
    trace = f"  throw err;\n\nError: no module 'x'\n    at a.js:1\n{fields}}}\n\nNode.js v20.20.2"
    script.write_text(f"import sys; sys.exit({trace!r})", encoding="utf-8")
    with pytest.raises(UserError, match=r"last line of stderr: Error: no module 'x'$"):
        asked(Program(shlex.join([sys.executable, str(script)]), restarts=0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": {"A": "{casedir}"}}, "unknown field in system.env.A 'casedir'. Did you mean: cas"),
        ({"env": {"A": 5}}, "system.env.A must be a string, but is '5'"),
        ({"environment": ["NOT_SET_AT_ALL"]}, "the environment variable NOT_SET_AT_ALL is not set"),
    ],
)
def test_mistakes_in_variables_are_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        asked(Program("cat", **settings))
    assert message in raised.value.message


def test_noise_is_counted_for_each_answer(tmp_path: Path) -> None:
    async def ask(sut: SystemUnderTest) -> None:
        memory = await sut.fill_system()
        for _ in range(2):
            with metered(Ledger()) as ledger:
                await sut.ask(memory, QUESTION)

            counted.append(ledger.remarks[NOISE])

    counted: list[str] = []
    asyncio.run(play(ask, faulty(tmp_path, "noise")))
    assert counted == ["the program wrote 2 lines that are not replies"] * 2


def test_exit_by_signal_names_the_signal() -> None:
    assert describe_status(-9) == "by signal SIGKILL"
    assert describe_status(-99) == "by signal 99"


def test_refusal_is_an_error_without_a_restart(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the program .* refused search: no such") as raised:
        asked(faulty(tmp_path, "refuses"))
    assert str(raised.value).endswith(LAST_LINE)


def test_last_line_of_stderr_follows_a_malformed_reply(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not match the schema") as raised:
        asked(faulty(tmp_path, "malformed"))
    assert str(raised.value).endswith(LAST_LINE)


@pytest.mark.slow
def test_program_that_closes_its_output_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="closed its output during search"):
        asked(faulty(tmp_path, "closes", restarts=0))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (None, "system=command needs a program"),
        ("  ", "system=command needs a program"),
        ("python 'open", "system.command can't be read"),
        ("/no/such/program", "'/no/such/program' can't be started: No such file or directory"),
    ],
)
def test_mistakes_in_the_command_are_one_line(command: str | None, message: str) -> None:
    with pytest.raises(UserError) as raised:
        asked(Program(command))  # type: ignore[arg-type]
    assert message in raised.value.message


def test_edited_script_changes_the_identity_of_the_memory(tmp_path: Path) -> None:
    assert CommandMemory.files(Program(program()).settings) == (EXAMPLES / "memory_program.py",)

    script = tmp_path / "mine.py"
    settings = Program(f"python {script}").settings
    digests = []
    for text in ("one", "two", "one"):
        script.write_text(text, encoding="utf-8")
        digests.append(SystemSource(CommandMemory, settings).digests())

    assert digests[0] == digests[2] != digests[1]


def test_unreadable_file_is_a_one_line_error() -> None:
    class Missing(CommandMemory):
        @classmethod
        def files(cls, settings: Any) -> tuple[Path, ...]:
            return (Path("/no/such/file.py"),)

    with pytest.raises(UserError, match=r"names '/no/such/file.py', which can't be read"):
        SystemSource(Missing, Program("python").settings)
