"""The page in a real browser: offline, by keyboard, dark and light, on a phone, with hostile
text.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from sample_pages import BY_TOOLS, SKILL, Size, sample_comparison, turns_of, write_runs
from test_page import hostile_run

from memeval.records import Label, Status, Verdict
from memeval.report.page import write_page
from memeval.report.page.build import page_data
from memeval.report.page.runs import PageRun
from memeval.report.page.write import render
from memeval.results import RECORDS_FILE
from memeval.results.record import TimelineEvent, read_records

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
AXE = files("axe_playwright_python") / "axe.min.js"
"""axe-core, which memeval does not ship."""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no Chromium at {CHROMIUM}"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
SIZE = Size(cells=3, cases=3, questions=30, repeats=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp("outputs"), SIZE)


@pytest.fixture(scope="module")
def address(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("page") / "report.html"
    write_page(folders, target, sample_comparison(folders))
    return target.as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started_chromium() as started:
        yield started


@contextmanager
def started_chromium() -> Iterator[Browser]:
    """A browser. While it is open, nothing else in the process may run an event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


class Seen:
    """A page, with its requests and its errors."""

    def __init__(self, chromium: Browser, **options: Any) -> None:
        self.page: Page = chromium.new_page(
            **{"viewport": {"width": 1280, "height": 800}, **options}
        )
        self.page.set_default_timeout(60_000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def shows(self, question_id: str) -> None:
        """Waits until the question is shown."""
        link = self.page.locator("#question .facts a")
        link.get_by_text(question_id, exact=True).wait_for()


@pytest.fixture
def seen(chromium: Browser) -> Iterator[Seen]:
    made = Seen(chromium)
    yield made
    made.page.close()


def test_page_opens_from_disk_and_requests_nothing(seen: Seen, address: str) -> None:
    seen.page.goto(address)
    assert "bm25" in (seen.page.locator(".lead").text_content() or "")
    seen.page.locator("[data-view=questions]").click()
    seen.shows("conv-26/q0")
    for summary in seen.page.locator("#question details details > summary").all():
        summary.click()

    assert seen.requests == [address] and seen.complaints == []


def test_question_has_a_url(seen: Seen, address: str, folders: list[Path]) -> None:
    seen.page.goto(f"{address}#q=conv-27/q12")
    seen.shows("conv-27/q12")
    (row, _) = PageRun.read(folders[0]).records["conv-27/q12"]
    pane = seen.page.locator("#question")
    assert pane.locator("h2").text_content() == row.question
    assert pane.locator(".gold .value").text_content() == row.gold[0]
    assert "asked at 9:30 am on 1 June 2023" in (pane.locator(".facts").text_content() or "")
    assert pane.locator(".answer .text").first.text_content() == row.hypothesis

    assert "aria-current" in seen.page.locator("#list a", has_text="conv-27/q12").first.evaluate(
        "row => row.outerHTML"
    )
    seen.page.evaluate("location.hash = '#q=conv-28/q3'")
    seen.shows("conv-28/q3")


def test_chunks_mark_the_evidence_and_repeats_can_be_chosen(
    seen: Seen, address: str, folders: list[Path]
) -> None:
    run = PageRun.read(folders[0])
    name, rows = next(
        (name, rows) for name, rows in run.records.items() if rows[0].evidence_ranks == (1,)
    )
    seen.page.goto(f"{address}#q={name}")
    seen.shows(name)
    answer = seen.page.locator("#question .answer").first
    answer.get_by_text("10 chunks retrieved").click()
    # Chunks are drawn when the browser reports that the list was opened.
    answer.locator(".chunk").last.wait_for()
    assert answer.locator(".chunk").count() == 10
    marked = answer.locator(".chunk.evidence")
    assert (marked.locator(".rank").text_content(), marked.count()) == ("1", 1)
    assert "Ana:" in (marked.locator(".text").text_content() or "")

    answer.get_by_text("Context that the reader saw").click()
    whole = answer.locator(".whole").text_content() or ""
    assert whole.count("\n") == 9 and "Ana:" in whole

    seen.page.get_by_role("button", name="repeat 1").first.click()
    answers = seen.page.locator("#question .answer").first.locator(".text")
    assert answers.first.text_content() == rows[1].hypothesis


def test_evidence_has_the_text_of_its_own_conversation(
    seen: Seen, address: str, folders: list[Path]
) -> None:
    """Two conversations share a block, and both have turns D1:1, D1:2 and so on."""
    records = PageRun.read(folders[0]).records
    name = next(name for name in records if name > "conv-27" and records[name][0].evidence_ranks)
    seen.page.goto(f"{address}#q={name}")
    seen.shows(name)

    texts = seen.page.locator("#question .gold .turn .text").all_text_contents()
    turns = turns_of(SIZE, 1)
    assert texts and set(texts) <= {turns[turn] for turn in records[name][0].evidence}


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 380])
def test_timeline_of_a_case_is_next_to_its_question(
    chromium: Browser, folders: list[Path], tmp_path: Path, width: int
) -> None:
    folder = tmp_path / "runs" / folders[0].name
    shutil.copytree(folders[0], folder)
    timeline = (
        TimelineEvent("session", "s1 · 9:30 am on 1 June 2023"),
        TimelineEvent("forget", "Please forget Mara Velt's address.", "2 items"),
        TimelineEvent("asked", "the question is asked"),
        TimelineEvent("consolidate", ""),
    )
    rows = [replace(row, timeline=timeline) for row in read_records(folder / RECORDS_FILE)]
    lines = "".join(json.dumps(row.to_json()) + "\n" for row in rows)
    (folder / RECORDS_FILE).write_text(lines, encoding="utf-8")
    write_page([folder], tmp_path / "page.html")

    seen = Seen(chromium, viewport={"width": width, "height": 800})
    seen.page.goto(f"{(tmp_path / 'page.html').as_uri()}#q=conv-26/q0")
    seen.shows("conv-26/q0")
    events = seen.page.locator("#question .timeline li")
    assert events.all_inner_texts()[1].split("\n")[-1] == (
        "Please forget Mara Velt's address. · 2 items"
    )
    kinds = [row.get_attribute("class") for row in events.all()]
    assert kinds == ["session", "forget", "asked", "consolidate later"]
    check_with_axe(seen)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    seen.page.close()


@pytest.mark.slow
def test_filters_count_the_matching_questions(
    seen: Seen, address: str, folders: list[Path]
) -> None:
    runs = [PageRun.read(folder) for folder in folders]

    def outcomes(cell: int, name: str) -> set[float | None]:
        return {row.score for row in runs[cell].records[name]}

    names = list(runs[0].records)
    expected = [n for n in names if outcomes(0, n) == {1.0} and 1.0 not in outcomes(1, n)]
    seen.page.goto(f"{address}#questions")
    form = seen.page.locator("#filters")
    form.locator("[name=is]").select_option("r")
    form.locator("[name=and]").select_option("w")
    tally = seen.page.locator("#tally span")
    wrong = [n for n in expected if mark_in_page(seen.page, 1, n) == "w"]
    assert tally.text_content() == f"{len(wrong)} of {len(names)} questions" and wrong

    seen.page.get_by_role("button", name="Clear").click()
    form.locator("[name=conversation]").select_option("conv-27")
    form.locator("[name=category]").select_option("temporal")
    chosen = [
        name
        for name, rows in runs[0].records.items()
        if rows[0].case_id == "conv-27" and rows[0].category_name == "temporal"
    ]
    assert tally.text_content() == f"{len(chosen)} of {len(names)} questions" and chosen

    seen.page.get_by_role("button", name="Clear").click()
    word = (runs[2].records[names[40]][0].hypothesis or "").split()[3]
    form.locator("[name=text]").fill(f"{word} conv-27/q10")
    seen.page.get_by_text("1 of 90 questions").wait_for()
    seen.shows("conv-27/q10")


def mark_in_page(page: Page, cell: int, name: str) -> str:
    script = """([cell, name]) => {
      const index = JSON.parse(document.getElementById("index").textContent);
      return index.marks[cell][index.ids.indexOf(name)];
    }"""
    found: str = page.evaluate(script, [cell, name])
    return found


def test_keys_move_between_questions_unless_typed_in_a_field(seen: Seen, address: str) -> None:
    seen.page.goto(f"{address}#q=conv-26/q0")
    seen.shows("conv-26/q0")
    seen.page.keyboard.press("j")
    seen.shows("conv-26/q1")
    seen.page.keyboard.press("k")
    seen.shows("conv-26/q0")

    names = [f"conv-26/q{number}" for number in range(1, 30)]
    failure = next(name for name in names if mark_in_page(seen.page, 0, name) != "r")
    seen.page.keyboard.press("f")
    seen.shows(failure)
    assert seen.page.evaluate("location.hash") == f"#q={failure}"

    seen.page.keyboard.press("/")
    seen.page.keyboard.type("jkf")
    assert seen.page.locator("#filters input").input_value() == "jkf"


def test_tables_sort_in_both_directions(seen: Seen, address: str) -> None:
    seen.page.goto(address)
    cells = seen.page.locator("table.cells")
    cells.get_by_role("button", name="accuracy").click()
    order = cells.locator("tbody tr td:first-child").all_text_contents()
    best = sorted(range(3), key=lambda cell: -SKILL[cell])
    assert order == [str(cell + 1) for cell in best]
    cells.get_by_role("button", name="accuracy").click()
    assert cells.locator("tbody tr td:first-child").all_text_contents() == order[::-1]

    names = "['k=10', '–', 'k=5']"
    write = f"(rows) => rows.forEach((row, place) => row.textContent = {names}[place])"
    cells.locator("tbody th").evaluate_all(write)
    cells.get_by_role("button", name="run").click()
    assert cells.locator("tbody th").all_text_contents() == ["k=5", "k=10", "–"]


def test_light_and_dark_follow_the_system_or_the_button(seen: Seen, address: str) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    seen.page.goto(address)
    light = seen.page.evaluate(background)
    seen.page.emulate_media(color_scheme="dark")
    dark = seen.page.evaluate(background)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(20, 23, 26)")
    seen.page.locator("#theme").click()
    assert seen.page.evaluate(background) == light


def test_forced_colours_mark_only_the_shown_question_and_view(seen: Seen, address: str) -> None:
    seen.page.emulate_media(forced_colors="active")
    seen.page.goto(f"{address}#q=conv-26/q1")
    seen.shows("conv-26/q1")
    for links in (".top nav a", "#list a"):
        shown = seen.page.locator(f"{links}[aria-current]").first
        other = seen.page.locator(f"{links}:not([aria-current])").first
        border = "link => getComputedStyle(link).borderColor"
        assert shown.evaluate(border) != other.evaluate(border)


def test_a_tablet_leaves_most_of_its_width_to_the_question(chromium: Browser, address: str) -> None:
    seen = Seen(chromium, viewport={"width": 768, "height": 1024})
    seen.page.goto(f"{address}#q=conv-26/q3")
    seen.shows("conv-26/q3")
    box = seen.page.locator("#question").bounding_box()
    assert box is not None and box["width"] > 450
    assert seen.page.locator(".left").is_visible()
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 768


def test_the_marks_of_many_runs_leave_room_for_the_question(seen: Seen, tmp_path: Path) -> None:
    folders = write_runs(tmp_path, Size(cells=10, cases=1, questions=8))
    write_page(folders * 2, tmp_path / "page.html")
    seen.page.goto(f"{(tmp_path / 'page.html').as_uri()}#questions")
    words = seen.page.locator("#list .words").first
    words.wait_for()
    assert words.evaluate("words => words.clientWidth") > 300


def test_an_unread_verdict_has_its_reason_once(
    seen: Seen, folders: list[Path], tmp_path: Path
) -> None:
    run = PageRun.read(folders[0])
    name, (row, *_) = next(iter(run.records.items()))
    verdict = Verdict("llm", Label.UNSCORED, None, reason="can't be read: perhaps")
    unread = replace(row, status=Status.UNPARSED, verdict=verdict)
    retrieved = replace(row, status=Status.RETRIEVED, verdict=None, hypothesis=None)
    for record, words in (
        (unread, verdict.reason),
        (retrieved, "Only the retrieval was measured."),
    ):
        html = render(page_data([replace(run, records={name: [record]})]))
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        seen.page.goto(f"{(tmp_path / 'page.html').as_uri()}?{record.status}#q={name}")
        answer = seen.page.locator("#question .answer")
        assert words in (answer.text_content() or "")
        assert "no reason given" not in (answer.text_content() or "")
        assert answer.locator("summary .mark").first.get_attribute("aria-label") == "not scored"


def test_a_run_that_only_retrieves_is_neither_right_nor_wrong(
    seen: Seen, folders: list[Path], tmp_path: Path
) -> None:
    run = PageRun.read(folders[0])
    name, (row, *_) = next(iter(run.records.items()))
    right = replace(row, verdict=Verdict("keyword", Label.CORRECT, 1.0))
    retrieved = replace(row, status=Status.RETRIEVED, verdict=None, hypothesis=None)
    runs = [replace(run, records={name: [record]}) for record in (right, retrieved)]
    (tmp_path / "page.html").write_text(render(page_data(runs)), encoding="utf-8")
    for show, count in (("allright", 1), ("differ", 0), ("unscored", 1)):
        seen.page.goto(f"{(tmp_path / 'page.html').as_uri()}?{show}#show={show}")
        seen.page.get_by_text(f"{count} of 1 question").wait_for()


@pytest.mark.parametrize("width", [1280, 380])
def test_figures_of_a_run_cover_nothing(
    chromium: Browser, folders: list[Path], tmp_path: Path, width: int
) -> None:
    run = PageRun.read(folders[0])
    tags = {**run.summary.tags, "stages": "retrieve", "biased_cut": "first 4 of each conversation"}
    data = page_data([replace(run, summary=dataclasses.replace(run.summary, tags=tags))])
    (tmp_path / "page.html").write_text(render(data), encoding="utf-8")
    seen = Seen(chromium, viewport={"width": width, "height": 760})
    seen.page.goto((tmp_path / "page.html").as_uri())
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    wider = "(tiles) => tiles.filter((tile) => tile.scrollWidth > tile.clientWidth).length"
    assert seen.page.locator(".tiles > div").evaluate_all(wider) == 0


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "#questions", "#q=conv-26/q3"])
def test_a_phone_shows_it_without_scrolling_sideways(
    chromium: Browser, address: str, place: str
) -> None:
    seen = Seen(chromium, viewport={"width": 380, "height": 760})
    seen.page.goto(f"{address}{place}")
    seen.page.wait_for_timeout(100)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 380
    if place == "#questions":
        seen.page.locator("#list a").nth(2).click()
        seen.shows("conv-26/q2")
        seen.page.get_by_role("button", name="List").click()
        seen.page.locator("#list a").nth(2).wait_for()

    seen.page.close()


def test_print_shows_the_question_without_controls(seen: Seen, address: str) -> None:
    seen.page.goto(f"{address}#q=conv-26/q3")
    seen.shows("conv-26/q3")
    seen.page.emulate_media(media="print")
    assert seen.page.locator("#question h2").is_visible()
    assert not seen.page.locator("#filters").is_visible()
    assert not seen.page.locator(".top nav").is_visible()
    # Paper has no scroll bar: long headings are broken, or the last columns would be cut off.
    heading = seen.page.locator(".cells th button").first
    assert heading.evaluate("button => getComputedStyle(button).whiteSpace") == "normal"
    assert seen.page.pdf().startswith(b"%PDF")


def test_hostile_text_of_models_stays_text(seen: Seen, folders: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "hostile.html"
    write_page([hostile_run(folders, tmp_path)], target)
    seen.page.goto(f"{target.as_uri()}#questions")
    seen.page.locator("#question .answer .text").wait_for()
    answer = seen.page.locator("#question .answer .text").text_content() or ""
    assert answer.startswith("</script><script>window.hit = 1</script><img src=x")
    assert "\\u202e" in answer and "\u202e" not in answer

    assert seen.page.evaluate("window.hit") is None
    assert seen.page.locator("img").count() == 0
    assert seen.requests == [target.as_uri()] and seen.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["blob", "srcdoc"])
def test_page_works_in_a_sandboxed_frame(
    seen: Seen, address: str, tmp_path: Path, how: str
) -> None:
    """As MLflow shows an artifact: scripts run, but storage and the URL are out of reach."""
    outer = tmp_path / "outer.html"
    outer.write_text("<!doctype html><title>outer</title><body></body>", encoding="utf-8")
    text = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    seen.page.goto(outer.as_uri())
    seen.page.evaluate(
        """([text, how]) => {
          const frame = document.createElement("iframe");
          frame.setAttribute("sandbox", "allow-scripts");
          frame.width = 1200; frame.height = 700;
          const blob = new Blob([text], {type: "text/html"});
          if (how === "blob") frame.src = URL.createObjectURL(blob);
          else frame.srcdoc = text;
          document.body.append(frame);
        }""",
        [text, how],
    )
    frame = seen.page.frame_locator("iframe")
    frame.locator("[data-view=questions]").click()
    frame.locator("#list a").nth(2).click()
    frame.locator("#question .facts a").get_by_text("conv-26/q2", exact=True).wait_for()
    frame.locator("[data-view=overview]").click()
    frame.locator("table.strip thead a").nth(1).click()
    frame.locator("#question .facts a").get_by_text("conv-27/q0", exact=True).wait_for()
    assert seen.complaints == []


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "#q=conv-26/q3"])
def test_axe_finds_nothing_serious(seen: Seen, address: str, scheme: Any, place: str) -> None:
    seen.page.emulate_media(color_scheme=scheme)
    seen.page.goto(f"{address}{place}")
    if place:
        seen.shows("conv-26/q3")

    check_with_axe(seen)


def check_with_axe(seen: Seen) -> None:
    seen.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = seen.page.evaluate("axe.run().then((result) => result.violations)")
    serious = [
        (violation["id"], [node["html"] for node in violation["nodes"]][:3])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 380])
def test_the_steps_of_a_question_show_calls_results_and_evidence(
    seen: Seen, address: str, folders: list[Path], width: int
) -> None:
    seen.page.set_viewport_size({"width": width, "height": 800})
    seen.page.goto(f"{address}#q={BY_TOOLS}")
    seen.shows(BY_TOOLS)
    evidence = PageRun.read(folders[0]).records[BY_TOOLS][0].evidence[0]
    answer = seen.page.locator("#question .answer").first
    assert "1 of 1 evidence shown" in (answer.locator(".figures").text_content() or "")

    answer.get_by_text("3 steps, 2 tool calls").click()
    first, empty, last = (answer.locator("ol > li").nth(at) for at in range(3))
    last.wait_for()
    assert "evidence" in (first.get_attribute("class") or "")
    found, failed = first.locator(".call").all()
    assert found.locator("summary").text_content() == (
        f"grep pattern: harbour|lantern, lines: 3evidence {evidence}"
    )
    assert failed.locator("summary").text_content() == 'remember {"text": unknown tool'
    assert "<b>The tools</b>" in (failed.locator(".first").text_content() or "")
    assert empty.locator(".fault").text_content() == "empty reply"
    assert last.locator(".text").text_content()

    answer.get_by_text("Writer: 1 session, 1 tool call").click()
    answer.get_by_text("session s1: 1 tool call").click()
    wrote = answer.get_by_text("add_memory text: Ana took the <i>lantern</i>.")
    wrote.wait_for()
    assert f"evidence {evidence}" in (wrote.text_content() or "")

    # The first lines are replaced by the whole result.
    assert found.locator(".first").is_visible()
    found.locator("summary").click()
    found.locator(".whole").wait_for()
    assert not found.locator(".first").is_visible()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    check_with_axe(seen)


@pytest.mark.slow
def test_page_with_ten_runs_of_1540_questions_opens(seen: Seen, tmp_path: Path) -> None:
    folders = write_runs(tmp_path, Size(cells=10, cases=10, questions=154, turns=590))
    target = tmp_path / "report.html"
    write_page(folders, target, sample_comparison(folders))
    assert target.stat().st_size < 15e6

    seen.page.goto(f"{target.as_uri()}#q=conv-30/q100")
    seen.shows("conv-30/q100")
