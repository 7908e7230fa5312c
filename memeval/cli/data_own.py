"""The actions of `data` on your own data, and their arguments."""

from __future__ import annotations

FORM_NAMES = (
    "chatgpt, claude, messages, sharegpt, agent, slack, table, locomo, longmemeval, "
    "memory_agent_bench"
)
TAKES_OVERRIDES = ("draft", "grow")
"""Actions that accept settings as further words, as a run does."""

CHECK = """
list every mistake in your own file (dataset=json), with its location

file
"""
IMPORT = f"""
make a file of dataset=json from chats, logs, tables or benchmarks' files

files+ FILE           file, folder or .zip to read
--into! FILE          file to write
--as FORM             form of the files (default: recognised): {FORM_NAMES}
--map FIELD=COLUMN,…  columns of a table, as speaker=sender,text=body
--date-format FORMAT  form of a table's times, as '%%d.%%m.%%Y %%H:%%M'
--case NAME           what a case is: conversation, thread, user, channel, folder, all or a column
    (default: by the form)
--windows N:int       make N spans of time the cases instead
--redact              replace e-mail addresses, phone numbers, cards, IBANs, IPs and secrets by
    placeholders, with a table beside the file
--redact-names FILE   replace these names too, one per line
"""
_DRAFTING = """
--kinds KIND=SHARE,…  kinds of questions with their shares, as single_hop=2,update (default: all
    alike)
--plan                show the calls that it would take; none is made
--config-dir FOLDER   options of your own
"""
DRAFT = f"""
have a model propose questions about your own file, and check each of them; takes the settings of a
run, as llm=openai llm.draft.model=gpt-4o

file                  file of dataset=json
--n! N:int            drafted questions in all, those that are there already included
{_DRAFTING}
"""
GROW = f"""
draft for the cases that have no drafted question yet

file                  file of dataset=json
--n N:int             questions for the new cases (default: as many a case as the others have)
{_DRAFTING}
"""
REVIEW = """
accept, reject and edit the questions of your own file on a page

file             file of dataset=json
--reviewer NAME  who decides (default: the name of your account)
--terminal       ask here, one by one, instead of on a page
--disputed       ask only questions that others disagree on and you have not decided
--agreement      show how far reviewers agree (Cohen's kappa) and where they differ, and ask
    nothing
"""
_VERSION = """
--version! VERSION   as 1, 2.0 or 2026-05
--into FOLDER        folder to write (default: own/NAME@VERSION in the data folder, where
    dataset.path=NAME@VERSION finds it)
--split SHARE:float  put this share of the cases on dev
--licence TEXT       licence, for the datasheet
"""
FREEZE = f"""
write a version of your own file: a folder with digest and datasheet

file                 file of dataset=json, or a frozen folder
--name NAME          name of the data set (default: the file's)
{_VERSION}
"""
MERGE = f"""
write several frozen data sets as one

files+ FROZEN        folder or name
--name! NAME         name of the whole
{_VERSION}
"""
DIFF = """
show what changed between two versions (exit status 1 if anything did)

old  frozen folder or name, or a file of dataset=json
new
"""
POWER = """
show which difference your own data could show, and what more of it would

file  frozen folder or name, or a file of dataset=json
"""
OWN_ACTIONS = {
    "check": ("memeval.cli.data_check:check_chosen", CHECK),
    "import": ("memeval.cli.data_import:import_data", IMPORT),
    "draft": ("memeval.cli.data_draft:draft", DRAFT),
    "grow": ("memeval.cli.data_draft:draft", GROW),
    "review": ("memeval.cli.data_review:review", REVIEW),
    "freeze": ("memeval.cli.data_freeze:freeze", FREEZE),
    "merge": ("memeval.cli.data_freeze:join", MERGE),
    "diff": ("memeval.cli.data_freeze:diff", DIFF),
    "power": ("memeval.cli.data_freeze:power", POWER),
}
"""Path of each action's function, from parsed arguments to exit status, and the action's usage."""
