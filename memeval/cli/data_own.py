"""The actions of `data` for data of your own, and their arguments."""

from __future__ import annotations

from typing import Protocol

from memeval.cli.parser import Parser

FORM_NAMES = (
    "chatgpt, claude, messages, sharegpt, agent, slack, table, locomo, longmemeval, "
    "memory_agent_bench"
)
OWN_ACTIONS = {
    "check": "memeval.cli.data_check:check_chosen",
    "import": "memeval.cli.data_import:import_data",
    "draft": "memeval.cli.data_draft:draft",
    "grow": "memeval.cli.data_draft:draft",
    "review": "memeval.cli.data_review:review",
    "freeze": "memeval.cli.data_freeze:freeze",
    "merge": "memeval.cli.data_freeze:join",
    "diff": "memeval.cli.data_freeze:diff",
    "power": "memeval.cli.data_freeze:power",
}
"""Where each action is, which takes what was parsed and returns the exit status."""
TAKES_OVERRIDES = ("draft", "grow")
"""Actions whose further words are settings, as those of a run."""


class Actions(Protocol):
    """Return type of `add_subparsers`."""

    def add_parser(self, name: str, *, help: str) -> Parser: ...


def add_own_actions(actions: Actions) -> None:
    """Takes the actions of `OWN_ACTIONS`."""
    checked = actions.add_parser(
        "check", help="list every mistake in your own file (dataset=json), with its location"
    )
    checked.add_argument("file")
    _add_import(actions)
    _add_draft(actions)
    _add_review(actions)
    _add_versions(actions)


def _add_draft(actions: Actions) -> None:
    """Takes `data draft FILE --n N` and `data grow FILE`."""
    drafted = actions.add_parser(
        "draft",
        help="have a model propose questions about your own file, and check each of them; takes "
        "the settings of a run, as llm=openai llm.draft.model=gpt-4o",
    )
    grown = actions.add_parser("grow", help="draft for the cases that have no drafted question yet")
    for parser in (drafted, grown):
        parser.add_argument("file", help="file of dataset=json")
        parser.add_argument(
            "--n",
            type=int,
            required=parser is drafted,
            metavar="N",
            help="drafted questions in all, those that are there already included"
            if parser is drafted
            else "questions for the new cases (default: as many a case as the others have)",
        )
        parser.add_argument(
            "--kinds",
            metavar="KIND=SHARE,…",
            help="kinds of questions with their shares, as single_hop=2,update (default: all "
            "alike)",
        )
        parser.add_argument(
            "--plan", action="store_true", help="show the calls that it would take; none is made"
        )
        parser.add_argument("--config-dir", metavar="FOLDER", help="options of your own")


def _add_review(actions: Actions) -> None:
    reviewed = actions.add_parser(
        "review", help="accept, reject and edit the questions of your own file on a page"
    )
    reviewed.add_argument("file", help="file of dataset=json")
    reviewed.add_argument(
        "--reviewer", metavar="NAME", help="who decides (default: the name of your account)"
    )
    reviewed.add_argument(
        "--terminal", action="store_true", help="ask here, one by one, instead of on a page"
    )
    reviewed.add_argument(
        "--disputed",
        action="store_true",
        help="ask only what others differ on and you have not decided on",
    )
    reviewed.add_argument(
        "--agreement",
        action="store_true",
        help="show how far reviewers agree (Cohen's kappa) and where they differ, and ask nothing",
    )


def _add_versions(actions: Actions) -> None:
    frozen = actions.add_parser(
        "freeze", help="write a version of your own file: a folder with digest and datasheet"
    )
    frozen.add_argument("file", help="file of dataset=json, or a frozen folder")
    frozen.add_argument("--name", help="name of the data set (default: the file's)")
    merged = actions.add_parser("merge", help="write several frozen data sets as one")
    merged.add_argument("files", nargs="+", metavar="FROZEN", help="folder or name")
    merged.add_argument("--name", required=True, help="name of the whole")
    for parser in (frozen, merged):
        parser.add_argument("--version", required=True, help="as 1, 2.0 or 2026-05")
        parser.add_argument(
            "--into",
            metavar="FOLDER",
            help="folder to write (default: own/NAME@VERSION in the data folder, where "
            "dataset.path=NAME@VERSION finds it)",
        )
        parser.add_argument(
            "--split", type=float, metavar="SHARE", help="put this share of the cases on dev"
        )
        parser.add_argument("--licence", metavar="TEXT", help="licence, for the datasheet")

    compared = actions.add_parser(
        "diff", help="show what changed between two versions (exit status 1 if anything did)"
    )
    compared.add_argument("old", help="frozen folder or name, or a file of dataset=json")
    compared.add_argument("new")
    looked_at = actions.add_parser(
        "power", help="show which difference your own data could show, and what more of it would"
    )
    looked_at.add_argument("file", help="frozen folder or name, or a file of dataset=json")


def _add_import(actions: Actions) -> None:
    """Takes `data import FILE … --into FILE`."""
    imported = actions.add_parser(
        "import", help="make a file of dataset=json from chats, logs, tables or benchmarks' files"
    )
    imported.add_argument("files", nargs="+", metavar="FILE", help="file, folder or .zip to read")
    imported.add_argument("--into", required=True, metavar="FILE", help="file to write")
    imported.add_argument(
        "--as",
        dest="form",
        metavar="FORM",
        help=f"form of the files (default: recognised): {FORM_NAMES}",
    )
    imported.add_argument(
        "--map", metavar="FIELD=COLUMN,…", help="columns of a table, as speaker=sender,text=body"
    )
    imported.add_argument(
        "--date-format", metavar="FORMAT", help="form of a table's times, as '%%d.%%m.%%Y %%H:%%M'"
    )
    imported.add_argument(
        "--case",
        metavar="NAME",
        help="what a case is: conversation, thread, user, channel, folder, all or a column "
        "(default: by the form)",
    )
    imported.add_argument(
        "--windows", type=int, metavar="N", help="make N spans of time the cases instead"
    )
    imported.add_argument(
        "--redact",
        action="store_true",
        help="replace e-mail addresses, phone numbers, cards, IBANs, IPs and secrets by "
        "placeholders, with a table beside the file",
    )
    imported.add_argument(
        "--redact-names", metavar="FILE", help="replace these names too, one per line"
    )
