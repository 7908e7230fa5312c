"""`python -m memeval lint`."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Ended, completed, memeval
from doubles.endpoint import ScriptedEndpoint
from made_runs import example, made_run

from memeval.cli.lint import others_of
from memeval.datasets.locate import build

DEMO = ("dataset=demo", "tracking=none")
WORDS = 3


def lint(home: Path, *words: str) -> Ended:
    return memeval(home, "lint", *words)


def test_lint_reports_only_settings_tuned_on_test(tmp_path: Path) -> None:
    few = ("dataset.limit_cases=1", "dataset.limit_questions=2")
    swept = completed(tmp_path, "-m", "system=bm25", "top_k=2,5", "dataset.split=dev", *DEMO, *few)
    assert "judge: keyword; split dev; biased cut" in swept.out
    completed(tmp_path, "system=bm25", "top_k=5", "dataset.split=test", *DEMO, *few)
    done = lint(tmp_path, "system=bm25")
    assert done.status == 0 and done.out.count("nothing found") == 3, done.out

    completed(tmp_path, "system=bm25", "top_k=2", "dataset.split=test", *DEMO, *few)
    done = lint(tmp_path, "dataset.split=test")
    assert done.status == 1 and done.out.count("tuned on test") == 2
    (first, _) = json.loads(lint(tmp_path, "dataset.split=test", "--json").out)
    assert len(first["findings"][0]["questions"]) == 2


def test_lint_reports_gold_in_a_prompt_and_a_top_k_of_every_turn(tmp_path: Path) -> None:
    case = next(build("demo", tmp_path, path=str(demo_file())).cases())
    question = next(q for q in case.questions[:9] if q.gold and len(q.gold[0].split()) >= WORDS)
    template = tmp_path / "few.txt"
    template.write_text(
        f"Such as: {question.gold[0]}.\n---\n{{context}}\n\nQuestion: {{question}}\n",
        encoding="utf-8",
    )
    with ScriptedEndpoint() as endpoint:
        completed(
            tmp_path,
            *("system=bm25", "top_k=1000", "llm=openai", "llm.model=small", "judge=keyword"),
            *(f"prompt.file={template}", "dataset.limit_cases=1", "dataset.limit_questions=9"),
            *(f"llm.base_url={endpoint.base_url}", *DEMO),
            OPENAI_API_KEY="sk-test-0123456789abcdef",
        )

    done = lint(tmp_path, "system=bm25")
    text = " ".join(done.out.split())
    assert "gold in settings" not in text and "opens no file that a run names" in text

    done = lint(tmp_path, "system=bm25", "--prompt", str(template))
    text = " ".join(done.out.split())
    assert done.status == 1, done.out
    assert "gold in prompt" in text and "gold in settings" in text and question.question_id in text

    # A copy that comes back in a package has other paths and hosts, but is the same run.
    package = tmp_path / "own.memeval"
    completed(tmp_path, "pack", "-o", str(package))
    completed(tmp_path, "unpack", str(package))
    assert "tuned on test" not in lint(tmp_path, "system=bm25").out
    assert "retrieves everything: top_k=1000 covers every turn" in text
    assert "sk-test" not in text


def demo_file() -> Path:
    return Path(__file__).parents[2] / "data" / "demo" / "demo.json"


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    for words, error in (((), "required: RUN"), (("nothing",), "unknown run 'nothing'")):
        done = lint(tmp_path, *words)
        assert done.status == 2 and error in done.err


def test_lint_reads_a_frozen_set_by_name_but_no_path_of_a_run(tmp_path: Path) -> None:
    data = {"MEMEVAL_DATA_DIR": str(tmp_path / "data")}
    source = tmp_path / "mine.json"
    source.write_bytes((Path(__file__).parents[2] / "data/demo/own.json").read_bytes())
    completed(tmp_path, "data", "freeze", str(source), "--name", "mine", "--version", "1", **data)
    unread = "opens no file that a run names"
    for path, is_read in (("mine@1", True), (str(tmp_path / "data/own/mine@1"), False)):
        home = tmp_path / str(is_read)
        words = ("system=bm25", "dataset=json", f"dataset.path={path}", "tracking=none")
        completed(home, *words, **data)
        done = memeval(home, "lint", "system=bm25", **data)
        assert (unread not in " ".join(done.out.split())) == is_read, done.out + done.err


def test_an_invalid_run_is_not_one_of_the_comparable_ones(tmp_path: Path) -> None:
    rows = example("A")
    own, *others = [made_run(tmp_path, name, rows) for name in ("bm25", "dense")]
    others.append(made_run(tmp_path, "rag", rows, valid=False))
    siblings, rivals = others_of(own, others)
    assert [rival.summary.params["system"] for rival in rivals] == ["dense"] and not siblings
