"""Reads the files of an import and creates cases from them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.datasets.importing import cases
from memeval.datasets.importing.benchmarks import DATA_SETS, read_benchmark
from memeval.datasets.importing.chatgpt import read_chatgpt
from memeval.datasets.importing.chats import read_agent, read_chat, read_claude, read_sharegpt
from memeval.datasets.importing.contents import records_of
from memeval.datasets.importing.forms import FORMS, OWN, recognise
from memeval.datasets.importing.message import ImportLog, Message
from memeval.datasets.importing.messengers import read_telegram, whatsapp_table
from memeval.datasets.importing.questions import by_case, read_questions
from memeval.datasets.importing.slack import is_slack_file, read_names, read_slack
from memeval.datasets.importing.sources import JSON, ZIP_MARK, SourceFile, is_workbook, open_sources
from memeval.datasets.importing.table import read_csv, read_excel, read_table
from memeval.datasets.importing.times import BY_FORMAT
from memeval.datasets.io.fields import ARCHIVES
from memeval.errors import UserError
from memeval.text.personal import Redactor
from memeval.text.redaction import map_strings
from memeval.text.shown import in_shell, one_line

CONVERSATIONS = re.compile(r"conversations([-_ (].*|\d+)?\.json")
USERS = "users.json"
TABLES = (".csv", ".tsv", ".xlsx")
UNORDERED = ("slack", "table")
"""Formats whose messages may come in any order."""
DATED = ("table", "whatsapp")
"""Formats whose dates depend on a country."""
MAY_BE_JSON = re.compile(rb"[^\w<]*[{\[](?!\s*[\w<])")
"""Matches only if no word comes before or directly after the first bracket: a log may begin with
[06.05.24, 09:30].
"""
OFFICE_MARK = b"\xd0\xcf\x11\xe0"
"""First bytes of old Excel files, and of encrypted ones."""
OTHER_FILES = (
    "other files:  write a table (.csv) with the columns speaker, text and time, "
    'or messages: {"role": "user", "content": "…"} on each line'
)
READERS = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "telegram": read_telegram,
    "messages": read_chat,
    "sharegpt": read_sharegpt,
}


class ImportOptions(Struct, frozen=True, kw_only=True):
    """A user's settings for the files. None: recognised automatically."""

    form: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column of a table for each field."""
    date_format: str | None = None
    case: str | None = None
    """Key of the messages whose values are the cases."""
    windows: int | None = None
    """Number of time windows to use as cases instead."""


class Imported(Struct, frozen=True, kw_only=True):
    form: str
    case: str
    """The unit of a case: a key of the messages, `all` or `window of time`."""
    cases: Sequence[Mapping[str, Any]]
    log: ImportLog

    def write(self, file: IO[str], *, lines: bool) -> None:
        """Writes the cases: as one JSON document, or one case per line."""
        if lines:
            for case in self.cases:
                file.write(f"{json.dumps(case, ensure_ascii=False)}\n")
        else:
            json.dump({"cases": self.cases}, file, indent=1, ensure_ascii=False)
            file.write("\n")


def import_files(
    paths: Sequence[Path], options: ImportOptions, redactor: Redactor | None = None
) -> Imported:
    """The cases of exports, tables and benchmark files.

    Raises `UserError` for files that can't be read, have no known format or several formats, or
    contain no message. Odd records within them are left out, and counted in the log.
    """
    log = ImportLog()
    reader = _Reader(options=options, log=log)
    with open_sources(paths, log) as files:
        for file in _select_files(files, log):
            reader.read(file)

    form = reader.finish(paths)
    messages, questions = reader.messages, reader.questions
    if form in UNORDERED:
        messages = cases.sorted_by_time(messages, log)
    if redactor is not None:
        messages = [_redacted(message, redactor) for message in messages]
        questions = list(_redacted_questions(questions, redactor))

    case = options.case or FORMS[form].case
    if options.windows is not None:
        case = "window of time"
        groups = cases.cut_windows(messages, options.windows, log)
    else:
        # A table may lack the conversation of a message.
        is_guess = form == "table" and not options.case
        if is_guess and not any(case in message.keys for message in messages):
            case = cases.ALL

        groups = cases.cut_by_key(messages, case, log)

    asked = by_case(questions, list(groups))
    written = []
    for case_id, group in groups.items():
        written.append(cases.case_of(case_id, group, asked.get(case_id, ()), log))

    return Imported(form=form, case=case, cases=written, log=log)


class _Reader(Struct):
    """Reads one file after the other."""

    options: ImportOptions
    log: ImportLog
    messages: list[Message] = field(default_factory=list)
    questions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Each with the id of its case."""
    forms: dict[str, Path] = field(default_factory=dict)
    """The formats that were found, each with the first file that has it."""
    unknown: list[Path] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Names of Slack's users by id."""
    labels: set[str] = field(default_factory=set)
    folders: dict[str, list[Path]] = field(default_factory=dict)
    """The paths of the folders of each name."""

    def read(self, file: SourceFile) -> None:
        content = file.read()
        if not content.strip():
            self.log.leave_out("files without content")
            return

        if content.startswith(OFFICE_MARK):
            raise UserError(
                f"{file.shown_path} is an Excel file in the old format, or has a password.",
                "save it as .xlsx without a password, or as CSV",
            )
        if self._read_table(content, file):
            return
        is_text = file.ending not in JSON and not content.startswith(tuple(ARCHIVES))
        if self.options.form == "whatsapp" or (is_text and not MAY_BE_JSON.match(content)):
            self._read_text(content, file)
            return

        records = records_of(content, file.shown_path, self.log)
        if PurePosixPath(file.name).name == USERS and recognise(records) is None:
            self.names |= read_names(records, self.log)
            return

        self._read_records(records, file)

    def finish(self, paths: Sequence[Path]) -> str:
        """The only format that was found.

        Raises `UserError` for none or several, for no message, and for settings of another format.
        """
        if len(self.forms) > 1:
            formats = "; ".join(f"{path}: {FORMS[name].title}" for name, path in self.forms.items())
            raise UserError(
                f"the files have several formats ({formats}).", "import each of them separately"
            )
        if not self.forms and self.unknown:
            raise UserError(
                f"{self.unknown[0]}: unknown format.",
                f"the formats:  {', '.join(FORMS)}",
                "name the format:  --as FORM, or for a table  --map speaker=COLUMN,text=COLUMN",
                OTHER_FILES,
            )
        if self.questions and not self.messages:
            raise UserError(
                f"{paths[0]} contains questions, but no messages.",
                "also name the file with the conversations",
            )
        if not self.messages:
            left_out = "; ".join(self.log.lines())
            raise UserError(f"{paths[0]} contains no messages. {left_out}".strip(), OTHER_FILES)

        form = next(iter(self.forms))
        self._check_settings(form)
        self.log.leave_out("files of unknown format", len(self.unknown))
        return form

    def _check_settings(self, form: str) -> None:
        """Raises `UserError` for settings of another format, and for a date format of no time."""
        date_format = self.options.date_format
        given = []
        if self.options.columns:
            given.append("--map")
        # A table of questions may have dates, next to messages in any format.
        if date_format and not self.questions:
            given.append("--date-format")
        if given and form not in DATED:
            raise UserError(f"{given[0]} is for tables, but this is {FORMS[form].title}.")
        if date_format and BY_FORMAT.format(date_format) not in self.log.conversions:
            raise UserError(f"no time matches --date-format '{one_line(date_format, 60)}'.")

    def _read_table(self, content: bytes, file: SourceFile) -> bool:
        """Reads a table; False if the file is not a table, or the user names another format."""
        options, is_excel = self.options, is_workbook(content) or file.ending == ".xlsx"
        is_meant = options.form == "table" or (options.columns and file.ending not in JSON)
        if not (is_excel or file.ending in TABLES or is_meant):
            return False

        is_excel = is_excel and content.startswith(ZIP_MARK)
        read = read_excel if is_excel else read_csv
        table = read(content, file.shown_path, options.columns, self.log)
        if table.holds_questions:
            self.questions += read_questions(table, options.date_format, self.log)
        elif options.form in (None, "table"):
            self.forms.setdefault("table", table.path)
            self.messages += read_table(table, options.columns, options.date_format, self.log)
        else:
            return False

        return True

    def _read_text(self, content: bytes, file: SourceFile) -> None:
        """Reads a text, which may be an export of WhatsApp."""
        # An archive is named after its conversation.
        name = file.path.stem if file.stem == "_chat" else file.stem
        text = content.decode("utf-8", "replace")
        table = whatsapp_table(text, self._label(name), file.shown_path)
        if table is None or self.options.form not in (None, "whatsapp"):
            self.unknown.append(file.shown_path)
        else:
            self.forms.setdefault("whatsapp", table.path)
            self.messages += read_table(table, {}, self.options.date_format, self.log)

    def _read_records(self, records: Sequence[Any], file: SourceFile) -> None:
        form = self.options.form or recognise(records)
        if form is None and is_slack_file(file.name):
            form = "slack"
        if form == OWN:
            raise UserError(
                f"{file.shown_path} already has the format of {OWN}.",
                f"check it:  python -m memeval data check {in_shell(file.shown_path)}",
            )
        if form is None and not records:
            self.log.leave_out("files without records")
            return
        if form is None:
            self.unknown.append(file.shown_path)
            return

        self.forms.setdefault(form, file.shown_path)
        if form in DATA_SETS:
            messages, questions = read_benchmark(form, file.shown_path, self.log)
            self.messages += messages
            self.questions += questions
        elif form == "slack":
            channel = file.folder or file.stem
            self.messages += read_slack(records, channel, file.stem, self.names, self.log)
        elif form == "agent":
            folder = self._folder(file)
            for message in read_agent(records, self._label(file.stem), self.log):
                keys = {**message.keys, "folder": folder}
                self.messages.append(replace(message, keys=keys))
        else:
            self.messages += READERS[form](records, self._label(file.stem), self.log)

    def _folder(self, file: SourceFile) -> str:
        """The name of the file's folder, made unique among the folders."""
        name, folder = str(PurePosixPath(file.name).parent), file.path.resolve()
        if name == ".":
            folder = folder.parent
            name = folder.name or file.stem

        places = self.folders.setdefault(name, [])
        if folder not in places:
            places.append(folder)

        number = places.index(folder) + 1
        return name if number == 1 else f"{name}-{number}"

    def _label(self, name: str) -> str:
        """The name of a file without extension, made unique among the files."""
        label, number = name, 1
        while label in self.labels:
            number += 1
            label = f"{name}-{number}"

        self.labels.add(label)
        return label


def _select_files(files: Sequence[SourceFile], log: ImportLog) -> list[SourceFile]:
    """The files to read. Of an export, these are only the files with conversations."""
    named, users, channels = [], [], []
    for file in files:
        name = PurePosixPath(file.name).name
        if CONVERSATIONS.fullmatch(name):
            named.append(file)
        elif name == USERS:
            users.append(file)
        elif is_slack_file(file.name):
            channels.append(file)

    if channels and not named:
        # The users' names are needed before the messages.
        named = users + channels

    exports = {file.path for file in named}
    chosen = named + [file for file in files if file.path not in exports]
    log.leave_out("files other than the conversations", len(files) - len(chosen))
    return chosen


def _redacted(message: Message, redactor: Redactor) -> Message:
    redact, redact_short = redactor.redact, redactor.redact_short
    keys = {name: redact_short(value) for name, value in message.keys.items()}
    return replace(
        message,
        speaker=redact_short(message.speaker),
        text=redact(message.text),
        title=message.title and redact_short(message.title),
        message_id=message.message_id and redact(message.message_id),
        keys=keys,
    )


def _redacted_questions(
    questions: Iterable[tuple[str, dict[str, Any]]], redactor: Redactor
) -> Iterator[tuple[str, dict[str, Any]]]:
    for case_id, question in questions:
        # The names of the fields stay.
        values = map_strings(list(question.values()), redactor.redact)
        yield redactor.redact(case_id), dict(zip(question, values, strict=True))
