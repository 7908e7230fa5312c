"""Mistakes: one clear line that says what is wrong, where, and how to fix it; status 2; nothing is
lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, SMALL, completed, kept, memeval, runs

CASE: dict[str, Any] = {
    "sample_id": "c-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kayak."}],
    },
    "qa": [
        {"question": "What did Ann buy?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4}
    ],
}


def without(*path: str | int) -> str:
    """The data file of one conversation, without one field."""
    content: Any = [deepcopy(CASE)]
    place = content
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return json.dumps(content)


FILES = {
    "cut.json": (ROOT / "data" / "demo" / "demo.json").read_text(encoding="utf-8")[:5000],
    "sound.json": json.dumps([CASE]),
    "no_question.json": without(0, "qa", 0, "question"),
    "no_speaker.json": without(0, "conversation", "session_1", 0, "speaker"),
    "an_object.json": json.dumps(CASE),
    "answer.txt": "Answer.\n---\n{context}\nNow answer.",
    "prompt.txt": "Answer.\n---\n{question} {context}",
    "judge.txt": "Judge.\n---\n{question} {answer}",
    "empty.jsonl": "\n",
    "broken.jsonl": (
        '{"question_id": "demo-1/q0", "hypothesis": "a"}\n\n{"question_id": "demo-1/q1", "hypo\n'
    ),
    "no_hypothesis.jsonl": '{"question_id": "demo-1/q0"}\n',
    "no_id.jsonl": (
        '{"question_id": "demo-1/q0", "hypothesis": "a"}\n{"id": "demo-1/q1", "hypothesis": "a"}\n'
    ),
    "a_list.jsonl": '["demo-1/q0", "a"]\n',
    "sound.jsonl": '{"question_id": "demo-1/q0", "hypothesis": "a"}\n',
}
"""Files that the commands below read, as `{name}` in their words."""


@dataclass(frozen=True)
class Mistake:
    command: str
    parts: tuple[str, ...]
    """Strings that the first line must contain."""
    way_out: str = ""
    """A string that must be anywhere in the output on stderr."""
    environment: Mapping[str, str] = field(default_factory=dict)


def mistake(command: str, *parts: str, way_out: str = "", **environment: str) -> Mistake:
    return Mistake(command, parts, way_out, environment)


KEY = {"OPENAI_API_KEY": "of the test"}
INTEGERS = {"top_k": "default, narrow, wide", "compression_turn": "middle, never, rolling"}
MISTAKES = [
    # names Longer than a file name can be.
    mistake(f"system={300 * 'b'}", f"unknown system '{300 * 'b'}'", way_out="--help system"),
    mistake(f"dataset=json dataset.path={300 * 'b'}", f"too long for a file name: {59 * 'b'}…"),
    mistake(
        "system=bm52",
        "unknown system 'bm52'",
        "Did you mean: bm25?",
        way_out="python -m memeval --help system",
    ),
    mistake("system=mine", way_out="for an option of your own:  --config-dir FOLDER"),
    mistake("judge=keywrod", "unknown judge 'keywrod'", "Did you mean: keyword?"),
    mistake("llm=opneai", "unknown llm 'opneai'", "Did you mean: openai?"),
    mistake("dataset=lokomo", "unknown dataset 'lokomo'", "Did you mean: locomo, locomo_mc10?"),
    mistake("-m system=no_memory,bm52", "unknown system 'bm52'", "Did you mean: bm25?"),
    mistake("-m +sweep=baselnies", "unknown sweep 'baselnies'", "Did you mean: baselines?"),
    mistake(
        "sistem=bm25",
        "unknown field or group 'sistem'",
        "Did you mean: system",
        way_out="memeval --help",
    ),
    mistake(
        "num_run=3",
        "unknown field or group 'num_run'",
        "Did you mean: num_runs?",
        way_out="memeval --help",
    ),
    mistake("+nmu_runs=3", "unknown field or group 'nmu_runs'", "Did you mean: num_runs?"),
    mistake("+num_runs=3", "'num_runs' is already set", way_out="without a plus:  num_runs=..."),
    mistake("+mine=1 +mine=2", "'mine' is already set", way_out="set it once; if it has a default"),
    mistake("++top_k=5", "'top_k' is already set", way_out="without a plus:  top_k=..."),
    mistake("+system=rag", "system has two options", way_out="without a plus if"),
    mistake("-m sweep=smoke", "sweep needs a plus", way_out="use:  +sweep=..."),
    mistake("system@x=rag", "unknown field or group 'system@x'. Did you mean: system"),
    mistake("llm=openai llm.modle=x", "unknown field or group 'llm.modle'", "llm.model", **KEY),
    mistake(
        "system=rag system.chunk_sise=9",
        "unknown field or group 'system.chunk_sise'",
        "system.chunk_size",
    ),
    mistake("+system.chunk_size=9", "unknown option 'system.chunk_size'", "system.index_date"),
    mistake(
        "llm.model=gpt-4o-mini",
        "'llm.model' is a field of llm=openai, llm=anthropic, llm=azure and 7 more only",
        way_out="llm=openai llm.model=...",
    ),
    mistake(
        "judge.prompt_file=x",
        "'judge.prompt_file' is a field of judge=beam, judge=convomem, judge=llm and 4 more only",
    ),
    mistake("llm.name=gpt", "unknown llm.name 'gpt'", way_out="memeval --help llm"),
    mistake("runn", "unknown command 'runn'", "Did you mean: run?", way_out="memeval --help"),
    mistake("--mutirun system=bm25", "unknown option '--mutirun'", "Did you mean: --multirun"),
    mistake("--hlep", "unknown option '--hlep'. Did you mean: --help"),
    mistake("--stats=3 system=bm25", "--stats takes no value"),
    mistake(
        "help compare", "unknown topic of --help 'compare'", way_out="arguments:  COMMAND --help"
    ),
    mistake("data fetch lokomo", "unknown data set 'lokomo'", "Did you mean: locomo"),
    mistake(
        f"data stats {__file__}",
        "data stats takes the name of a data set, but",
        way_out=f"data stats json dataset.path={__file__}",
    ),
    mistake("data fetch demo", "'demo' ships with memeval: nothing to fetch"),
    mistake(
        "data fetch",
        "data fetch: the following arguments are required: NAME",
        way_out="usage: python -m memeval data fetch",
    ),
    mistake(
        "data fetch longmemeval_oracle",
        "no sha256 is registered for data set 'longmemeval_oracle'",
        way_out="--sha256 HEX",
    ),
    mistake("data fetch locomo --max-bytes 0", "--max-bytes must be at least 1, not 0"),
    mistake(
        "data verify locomo",
        "'locomo' is not on this machine",
        way_out="python -m memeval data fetch locomo",
    ),
    # sweeps
    mistake("-m system=glob(bm52*)", "the sweep has no runs", way_out="--help GROUP"),
    mistake("+hydra.sweeper.params.x=1", "works only in files", way_out="-m top_k=5,10"),
    mistake("-m hydra.sweeper.params.top_k=5,10", "works only in files", way_out="-m top_k=5,10"),
    mistake("-m seed=range(0)", "the sweep has no runs: its glob() matches no option"),
    mistake("system=glob(bm*)", "has several values", way_out="-m 'system=glob(bm*)'"),
    mistake("label='a,b',c", "has several values", way_out="""-m 'label='"'"'a,b'"'"',c'"""),
    mistake("-m seed=interval(1,3)", "interval() needs", way_out="hydra/sweeper=optuna"),
    mistake("hydra.mode=several", "Error merging override hydra.mode=several"),
    mistake("hydra.run.dir=/dev/null/x", "Not a directory: '/dev/null/x'"),
    # integers
    *(
        mistake(
            f"{group}={value}",
            f"{group} must be one of {options} or a positive integer, not '{value}'",
        )
        for group, options in INTEGERS.items()
        for value in ("0", "-3", "7.5", "seven")
    ),
    mistake("-m top_k=3,0", "top_k must be one of", "not '0'"),
    mistake("top_k=", "top_k must be one of", "not ''"),
    mistake("top_k=[3,5]", "is a list, but top_k takes one option", way_out="-m top_k=a,b"),
    mistake(
        "tracking=null", "tracking must be the name of an option, not null", way_out="tracking"
    ),
    # values
    mistake("num_runs=0", "num_runs must be at least 1, not 0"),
    mistake("system.class=3", "system.class must be package.module:Class, but is '3'"),
    mistake("num_runs=x", "num_runs must be a whole number, not 'x'"),
    mistake("num_runs=1.5", "num_runs must be a whole number, not '1.5'"),
    mistake("num_runs=null", "num_runs must be a whole number, not 'null'"),
    mistake("min_coverage=1.5", "min_coverage must be at most 1, not 1.5"),
    mistake("min_coverage=nan", "min_coverage must be a finite number, not nan"),
    mistake("llm=openai llm.timeout_s=0", "llm.timeout_s must be above 0, not 0", **KEY),
    *(
        mistake(
            f"{group}=openai {group}.{setting}",
            f"{group}.{setting.partition('=')[0]} must be",
            **KEY,
        )
        for group in ("llm", "embedder")
        for setting in (
            *(f"max_concurrency={value}" for value in (10**9, 0, -4)),
            *(f"timeout_s={value}" for value in ("-1", "nan", "1e9")),
        )
    ),
    mistake(
        "llm=openai llm.base_url=ftp://h/v1",
        "llm.base_url must be a URL that begins with http:// or https://",
        **KEY,
    ),
    mistake(
        "llm=openai llm.base_url=localhost:8000",
        "llm.base_url must be a URL",
        way_out="http://localhost:8000/v1",
        **KEY,
    ),
    mistake("llm=openai llm.base_url=http://h:99999/v1", "llm.base_url is not a URL", **KEY),
    mistake(
        "llm=openai llm.api_key_env=''", "llm.api_key_env is empty", way_out="export OPENAI_API_KEY"
    ),
    mistake("embedder=openai embedder.api_key_env=", "embedder.api_key_env is empty"),
    mistake(
        "llm=openai llm.headers={api-key:NO_SUCH_KEY}",
        "llm.headers.api-key: the environment variable NO_SUCH_KEY is not set",
        **KEY,
    ),
    mistake("llm=openai", "OPENAI_BASE_URL must be a URL", **KEY, OPENAI_BASE_URL="here"),
    mistake("dataset.limit_cases=0", "dataset.limit_cases must be at least 1, not 0"),
    mistake(
        "dataset.images=pictures",
        "unknown value of dataset.images 'pictures'",
        way_out="caption, none",
    ),
    mistake("dataset.categories=[9]", "dataset.categories=[9]", "[1, 2, 3, 4, 5]"),
    mistake("dataset.categories=4", "must be a list", way_out="dataset.categories=[4]"),
    mistake(
        "dataset.categories=[[4]]", "dataset.categories must be a list of ids", "'[4]' is not an id"
    ),
    mistake("dataset.question_ids=[7]", "quotes around a number; '7' is not an id"),
    mistake(
        "granularity=chunk granularity.overlap=256",
        "granularity.overlap (256) must be smaller than granularity.size (256)",
    ),
    mistake(
        "system=rag,bm25",
        "'system=rag,bm25' has several values",
        way_out="add -m:  python -m memeval ... -m system=rag,bm25",
    ),
    mistake("dataset.canaries=2 granularity=summary", "but granularity=summary stores none"),
    mistake("system.timeout_s=soon", "system.timeout_s must be a number of seconds, or null"),
    mistake("prompt.file={prompt.txt}", "prompt.file needs a language model"),
    mistake(
        "llm=mock reader=tools prompt=con",
        "prompt=con takes notes of the chunks that a system shows, but reader=tools shows none",
        way_out="or:   prompt=auto",
    ),
    mistake(
        "reranker=lexical system.reranker=none",
        "reranker=lexical and system.reranker=none name different rerankers",
        way_out="-m reranker=lexical,none",
    ),
    mistake("llm=openai llm.headers=key", "llm.headers must map header names to names of"),
    mistake("-m top_k=interval(1,5)", "interval() needs", way_out="hydra/sweeper=optuna"),
    mistake("-m store.patience_s=1,2", "must be the same for all runs of a sweep"),
    mistake("-m llm=mock budget.calls=1,2", "the runs of a sweep share one budget"),
    mistake("=bm25", "'=bm25' names no setting", way_out="for example:  system=bm25"),
    mistake("-m +=bm25,rag", "'+=bm25,rag' names no setting"),
    mistake(
        "system==rag", "'system==rag' can't be read as group=option or field=value", way_out="quote"
    ),
    mistake(
        "llm=openai llm.model=${oc.env:NO_SUCH_MODEL}", "llm.model:", "'NO_SUCH_MODEL' not found"
    ),
    # models and their words
    mistake("--system bm25", "unknown option '--system'", way_out="use:  system=bm25"),
    mistake("--limit-questions=3", "without dashes", way_out="use:  dataset.limit_questions=3"),
    mistake(
        "limit=5", "Did you mean: dataset.limit_cases, dataset.limit_questions?", way_out="--help"
    ),
    mistake("temperature=0.5", "Did you mean: llm.temperature", way_out="--help"),
    mistake("llm=openai llm.rpm=60", "unknown field", way_out="llm.max_concurrency=4", **KEY),
    mistake("-m hydra.launcher=ray", "take one option", way_out="hydra/launcher=ray"),
    mistake("-m launcher=ray", "unknown field or group", way_out="hydra/launcher=ray"),
    mistake("output_dir=x", "unknown field or group", way_out="export MEMEVAL_HOME=FOLDER"),
    mistake("note=it's", "'note=it's' can't be read", way_out="quote"),
    mistake("-- system=bm25", "unknown option '--'."),
    mistake("plan --config-dir own", "--config-dir: the folder own does not exist"),
    mistake("--config-dir=own system=bm25", "--config-dir: the folder own does not exist"),
    mistake("prepare --config-dir=own", "--config-dir: the folder own does not exist"),
    mistake("board check --most-mb -5 a.memeval", "-5 is not a whole number from 0"),
    mistake("gate --bless --baseline . a", "--baseline . must be a file, but is a folder"),
    mistake("table a --output .", "--output . must be a file, but is a folder"),
    # Two blanks are an empty argument.
    mistake(
        "data import  --into x.json",
        "the argument after import is empty",
        way_out="is a variable of the shell not set?",
    ),
    mistake("gate --baseline b.json --must-pass=", "--must-pass= is empty"),
    mistake("compare --metric=\t", "--metric= is empty"),
    mistake("table --caption=a= --columns=f1,", "'f1,' has a comma too many"),
    mistake("data import {sound.json} --into .", ". already exists", way_out="another file"),
    mistake("run system=bm25 ./rag", "'./rag' can't be read as group=option", way_out="--help"),
    mistake("--config-dir . plan system=bm25", "'plan' can't be read", way_out="memeval plan ..."),
    mistake("top_k= 5", "'5' can't be read", way_out="leave out spaces around ="),
    mistake("dataset.path=~/a.json", "can't be read", way_out="dataset.path=$HOME/a.json"),
    mistake("note=a,", "'note=a,' can't be read", way_out="\"note='a,'\""),
    mistake(
        "-m system=bm25,rag,",
        "can't be read",
        way_out="leave out spaces and the last comma:  system=bm25,rag",
    ),
    mistake("system bm25", "'system' is a setting", way_out="system=bm25"),
    mistake("top_k = 10", "'top_k' is a setting", way_out="top_k=10"),
    mistake("--model gpt-4o", "unknown option '--model'", way_out="use:  llm.model=gpt-4o"),
    mistake("dataset.categories=[temporl]", "must be one or more of", way_out="2 temporal"),
    mistake("judge=gpt4", "unknown judge 'gpt4'", way_out="judge=llm llm.judge.model=gpt4"),
    mistake(
        "judge=claude-haiku-4-5",
        "unknown judge",
        way_out="judge=llm llm=anthropic llm.judge.model=claude-haiku-4-5",
    ),
    mistake("dataset=my.json", "unknown dataset", way_out="dataset=json dataset.path=my.json"),
    mistake("embedder=bge", "unknown embedder", way_out="embedder=openai embedder.model=bge"),
    mistake("llm=gpt-4o", "unknown llm 'gpt-4o'", way_out="llm=openai llm.model=gpt-4o"),
    mistake("llm=qwen/qwen3-32b", "unknown llm", way_out="llm=openrouter llm.model=qwen/qwen3-32b"),
    mistake("llm=vllm", "llm.model is not set", way_out="llm.model="),
    mistake("llm=azure", "not the URL of an Azure resource", way_out="NAME.openai.azure.com"),
    mistake("llm=anthropic", "ANTHROPIC_API_KEY is not set", way_out="export ANTHROPIC_API_KEY"),
    mistake(
        "llm=anthropic embedder=openai",
        "api.anthropic.com has no embeddings",
        way_out="embedder=tfidf",
    ),
    mistake(
        "llm=openai",
        "llm needs a key",
        "OPENAI_API_KEY is not set",
        way_out="or offline:  llm=extractive",
    ),
    mistake(
        "judge=llm llm.judge.model=m", "llm.judge needs a key", way_out="or offline:  judge=keyword"
    ),
    mistake(
        "llm=openai llm.api_key_env=MY_KEY",
        "the environment variable MY_KEY is not set",
        way_out="export MY_KEY=",
        **KEY,
    ),
    mistake("embedder=openai", "embedder=openai needs a key", way_out="embedder=tfidf"),
    mistake(
        "judge=llm",
        "judge=llm needs a language model, but llm=extractive is not one",
        way_out="judge=keyword",
    ),
    mistake(
        "judge=mem0",
        "judge=mem0 needs a language model, but llm=extractive is not one",
        way_out="llm=openai llm.model=",
    ),
    mistake(
        "llm=openai prompt.file=/no/words.txt",
        "the prompt template /no/words.txt can't be read: No such file or directory",
        **KEY,
    ),
    mistake("llm=openai prompt.file={answer.txt}", "answer.txt lacks {question}", **KEY),
    mistake("prompt.file={answer.txt}", "answer.txt lacks {question}"),
    mistake("llm=openai judge=llm judge.prompt_file={judge.txt}", "judge.txt lacks {gold}", **KEY),
    mistake(
        "llm=openai judge=mem0 judge.prompt_file=/no/words.txt",
        "the prompt template /no/words.txt can't be read",
        **KEY,
    ),
    # data files
    mistake(
        "dataset=locomo",
        "'locomo' is not on this machine",
        "locomo10.json is missing",
        way_out="data fetch locomo",
    ),
    mistake(
        "dataset=locomo dataset.path=/no/such.json",
        "/no/such.json is missing",
        way_out="name another file, or leave dataset.path out",
    ),
    mistake(
        "dataset.path=/no/such.json",
        "/no/such.json is missing",
        way_out="name another file, or leave dataset.path out",
    ),
    mistake(
        "dataset.path={cut.json}",
        "cut.json is not JSON",
        "is it cut off?",
        way_out="get the file again",
    ),
    mistake(
        "dataset.path={an_object.json}",
        "an_object.json contains an object, not a list of conversations",
    ),
    mistake(
        "dataset.path={no_question.json}",
        "no_question.json: c-1 qa[0]: field 'question' is missing",
    ),
    mistake(
        "dataset=locomo dataset.allow_unpinned=true dataset.path={no_speaker.json}",
        "no_speaker.json: c-1 session_1[0]: field 'speaker' is missing",
    ),
    mistake(
        "dataset=locomo dataset.path={sound.json}",
        "sound.json is not the registered file: its sha256 is",
        way_out="dataset.allow_unpinned=true",
    ),
    # answers of other programs
    mistake(
        "evaluate",
        "evaluate takes one answer file, not 0",
        way_out="evaluate ANSWERS.jsonl dataset=locomo judge=keyword",
    ),
    mistake("evaluate {sound.jsonl} {empty.jsonl}", "evaluate takes one answer file, not 2"),
    mistake("evaluate -m {sound.jsonl}", "unknown option '-m' of evaluate"),
    mistake(
        "evaluate /no/answers.jsonl", "/no/answers.jsonl can't be read: No such file or directory"
    ),
    mistake(
        "evaluate {empty.jsonl}",
        "empty.jsonl is empty",
        way_out='{"question_id": "conv-26/q0", "hypothesis": "7 May 2023"}',
    ),
    mistake("evaluate {broken.jsonl}", "broken.jsonl, line 3: not a row in JSON"),
    mistake(
        "evaluate {no_hypothesis.jsonl}",
        "line 1: not a row in JSON: object missing required field `hypothesis`",
    ),
    mistake(
        "evaluate {no_id.jsonl}",
        "line 2: not a row in JSON: object missing required field `question_id`",
        way_out="one row per line",
    ),
    mistake(
        "evaluate {a_list.jsonl}", "a_list.jsonl, line 1: not a row in JSON: expected `object`"
    ),
    mistake(
        "evaluate {sound.jsonl} system=rag",
        "system=rag has no effect: no system is run",
        way_out="leave it out",
    ),
    mistake("judge probe judge=keyword top_k=3", "top_k=3 has no effect: no system is run"),
    mistake("evaluate {sound.jsonl} top_k=3", "top_k=3 has no effect: no system is run"),
    mistake("evaluate {sound.jsonl} +embedder.model=a", "+embedder.model=a has no effect"),
    mistake("evaluate {sound.jsonl} num_runs=2", "num_runs must be 1 for evaluate"),
    mistake(
        "evaluate {sound.jsonl} judge=keywrod", "unknown judge 'keywrod'", "Did you mean: keyword?"
    ),
    mistake(
        "evaluate {sound.jsonl} judge=llm",
        "judge=llm needs a language model, but llm=extractive is not one",
    ),
    mistake("evaluate {sound.jsonl} dataset.path={cut.json}", "cut.json is not JSON"),
    mistake("evaluate {sound.jsonl} dataset.canaries=2", "but imported answers ignore them"),
    mistake("evaluate --ranked {sound.jsonl} top_k=0", "top_k must be one of", "not '0'"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a finished run in it."""
    home = tmp_path_factory.mktemp("home")
    completed(home, "system=no_memory", *SMALL)
    assert len(runs(home)) == 1
    return home


@pytest.mark.sampled(kept=10)
@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.command)
def test_mistake_is_reported_on_one_line_and_changes_no_file(
    home: Path, tmp_path: Path, case: Mistake
) -> None:
    words = case.command.split(" ")
    for name, text in FILES.items():
        if any(f"{{{name}}}" in word for word in words):
            (tmp_path / name).write_text(text, encoding="utf-8")
            words = [word.replace(f"{{{name}}}", str(tmp_path / name)) for word in words]
    before = kept(home)
    tracking = () if "=" not in case.command and words[0] != "evaluate" else ("tracking=none",)
    done = memeval(home, *words, *tracking, **case.environment)
    assert done.status == 2, done.out + done.err
    assert done.message.startswith("memeval: ")
    for part in case.parts:
        assert part in done.message
    assert case.way_out in done.err
    assert "Traceback" not in done.err and len(done.err.splitlines()) <= 4, done.err
    assert done.out == ""
    assert kept(home) == before


def test_unwritable_folder_is_reported(home: Path) -> None:
    (run,) = home.glob("outputs/runs/*/run.json")
    before = run.read_bytes()
    for words in (["system=no_memory"], ["-m", "system=no_memory,bm25"], ["evaluate", str(run)]):
        done = memeval(run / "below", *words, *SMALL)
        assert done.status == 2
        assert (
            done.message
            == f"memeval: {run / 'below' / 'outputs'} can't be written: Not a directory"
        )
        assert "set MEMEVAL_HOME to a folder that is" in done.err and "Traceback" not in done.err
    assert run.read_bytes() == before


MIXED = ("-m", "judge=keyword,llm,token_f1", "top_k=3,5", "system=no_memory", *SMALL)
"""A sweep with two cells that can't be run."""


def test_a_bad_cell_stops_a_sweep_before_it_begins(home: Path) -> None:
    before = kept(home)
    done = memeval(home, *MIXED)
    assert done.status == 2
    assert done.err.count("memeval: judge=llm needs a language model") == 1
    assert "nothing was run: 2 of 6 runs can't be started; --keep-going runs the others" in done.err
    assert "Traceback" not in done.err and done.out == ""
    assert kept(home) == before


def test_keep_going_is_not_suggested_if_all_cells_are_invalid(home: Path) -> None:
    done = memeval(home, "-m", "judge=llm", "top_k=3,5", "system=no_memory", *SMALL)
    assert done.status == 2
    assert done.err.endswith("  nothing was run: 2 of 2 runs can't be started\n")


def test_keep_going_is_refused_with_a_launcher_that_does_not_have_it(home: Path) -> None:
    done = memeval(home, *MIXED, "--keep-going", "hydra/launcher=basic")
    assert done.status == 2
    assert "--keep-going does not work with hydra/launcher=basic" in done.err.splitlines()[0]


@pytest.mark.slow
def test_keep_going_runs_the_valid_cells(home: Path) -> None:
    before = kept(home)
    done = memeval(home, *MIXED, "--keep-going")
    assert done.status == 2
    table = [line.split()[:2] for line in done.out.splitlines() if line.startswith(("3 ", "5 "))]
    assert table == [["3", "keyword"], ["5", "keyword"], ["3", "token_f1"], ["5", "token_f1"]], (
        done.out
    )
    assert (
        done.err.count("memeval: judge=llm needs a language model, but llm=extractive is not one")
        == 1
    )
    assert "Traceback" not in done.err
    assert {(run["params"]["judge"], run["params"]["top_k"]) for run in runs(home)} == {
        *((judge, top_k) for judge in ("keyword", "token_f1") for top_k in (3, 5)),
        ("keyword", 10),
    }
    after = kept(home)
    assert {name: after[name] for name in before} == before


def test_run_without_questions_is_refused_and_leaves_no_result(tmp_path: Path) -> None:
    file = tmp_path / "silent.json"
    file.write_text(json.dumps([{**CASE, "qa": []}]), encoding="utf-8")
    done = memeval(tmp_path, f"dataset.path={file}", "tracking=none")
    assert done.status == 2
    assert "memeval: dataset=demo: no questions are left under these settings" in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.glob("outputs/runs/*"))
