"""The actions of `data` on your own data, and their arguments."""

FORM_NAMES = (
    "chatgpt, claude, messages, sharegpt, agent, slack, telegram, whatsapp, table, locomo, "
    "longmemeval, memory_agent_bench"
)
TAKES_OVERRIDES = ("draft", "grow")
"""Actions that accept settings as further words, as a run does."""

CHECK = """
list all mistakes in your own file (dataset=json), with their locations

file FILE  file of dataset=json
"""
IMPORT = f"""
make a file of dataset=json from chats, logs, tables or benchmark files

files+ FILE           file, folder or .zip to read
-o --into! FILE       file to write
--as FORM             format of the files (default: detected): {FORM_NAMES}
--map FIELD=COLUMN,…  columns of a table, such as speaker=sender,text=body
--date-format FORMAT  format of a table's times, such as '%%d.%%m.%%Y %%H:%%M'
--case NAME           what a case is: conversation, thread, user, channel, folder, all or a column
    (default: depends on the format)
--windows N:int       instead, split the messages into N spans of time, one per case
--redact              replace e-mail addresses, phone numbers, cards, IBANs, IPs and secrets by
    placeholders, and list the originals in a table next to the file
--redact-names FILE   replace these names too, one per line
"""
_DRAFTING = """
--kinds KIND=SHARE,…  kinds of questions and their shares, such as single_hop=2,update (default:
    equal shares of all kinds)
--plan                show the calls that it would take, and make none
--config-dir FOLDER   folder with your own options
"""
DRAFT = f"""
have a model propose questions about your own file, and check each of them; takes the settings of a
run, such as llm=openai llm.draft.model=gpt-4o

file FILE             file of dataset=json
--n! N:int            drafted questions in total, including existing ones
{_DRAFTING}
"""
GROW = f"""
draft questions for the cases that have no drafted ones yet

file FILE             file of dataset=json
--n N:int             questions for the new cases (default: as many per case as in the others)
{_DRAFTING}
"""
REVIEW = """
accept, reject and edit the questions of your own file in a browser

file FILE        file of dataset=json
--reviewer NAME  who decides (default: the name of your account)
--terminal       review here, one by one, instead of in a browser
--disputed       only questions that others disagree on and that you have not decided
--agreement      only show the agreement of reviewers (Cohen's kappa) and their differences
"""
_VERSION = """
--version! VERSION   such as 1, 2.0 or 2026-05
-o --into FOLDER     folder to write (default: own/NAME@VERSION in the data folder, where
    dataset.path=NAME@VERSION finds it)
--split SHARE:float  share of the cases for dataset.split=dev
--licence TEXT       licence, for the datasheet
"""
FREEZE = f"""
write a version of your own file: a folder with a digest and a datasheet

file FILE            file of dataset=json, or a frozen folder
--name NAME          name of the data set (default: the file's)
{_VERSION}
"""
MERGE = f"""
write several frozen data sets as one

files+ FROZEN        frozen folder or name
--name! NAME         name of the merged data set
{_VERSION}
"""
DIFF = """
show what changed between two versions (exit status 1 if anything changed)

old OLD  frozen folder or name, or a file of dataset=json
new NEW  likewise
"""
POWER = """
show the smallest difference that your own data can show, and that more data could show

file FILE  frozen folder or name, or a file of dataset=json
"""
OWN_ACTIONS = {
    "check": ("memeval.cli.data_check:check_chosen", CHECK),
    "import": ("memeval.cli.data_import:import_data", IMPORT),
    "draft": ("memeval.cli.data_draft:draft", DRAFT),
    "grow": ("memeval.cli.data_draft:draft", GROW),
    "review": ("memeval.cli.data_review:review", REVIEW),
    "freeze": ("memeval.cli.data_freeze:freeze", FREEZE),
    "merge": ("memeval.cli.data_freeze:merge_files", MERGE),
    "diff": ("memeval.cli.data_freeze:diff", DIFF),
    "power": ("memeval.cli.data_freeze:power", POWER),
}
"""Path of each action's function, from parsed arguments to exit status, and the action's usage."""
