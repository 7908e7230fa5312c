"""BEAM (Tavakoli et al., ICLR 2026): long chats, each with two questions about each of ten
abilities.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct

from memeval.config.schema import PREPARE, at
from memeval.datasets.beam.metrics import MEASURES, official_measures
from memeval.datasets.beam.schema import ABILITIES, Chat, read_chat, read_questions
from memeval.datasets.contract import Dataset, DatasetSettings, FileInfo, LoadedDataset
from memeval.datasets.io.folder import digest_of_files
from memeval.datasets.locate import digest_file, is_registered, missing, shipped_digest
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase
from memeval.results import Record

TIERS = {"100k": "100K", "500k": "500K", "1m": "1M", "10m": "10M"}
"""Folder of each tier."""
TRUNCATED, WHOLE = "chat_trunecated.json", "chat.json"
"""File names of a chat, spelled as in the repository."""
EXPORTS = (".parquet", ".arrow")
"""Suffixes of the files of Hugging Face's exports."""
QUESTIONS = "probing_questions/probing_questions.json"


@dataclass(frozen=True)
class BeamSettings(DatasetSettings):
    tier: Literal["100k", "500k", "1m", "10m"] = at(PREPARE, "100k")
    """Approximate length of the chats, in tokens."""
    # Two corpora have one name: in 100K the runner's files have 5,094 messages, the full chats
    # 5,732.
    corpus: Literal["runner", "full"] = at(PREPARE, "runner")
    """`runner` reads the same as the official runner: a chat's truncated file if it has one. `full`
    reads the whole chats.
    """
    cut_markers: bool = at(PREPARE, True)
    """Whether to cut the markers that give the position of a user's question in the chat's plan.
    The official code leaves them in.
    """


class ChatFiles(Struct, frozen=True):
    number: int
    chat: Path
    questions: Path


class Beam(Dataset):
    """Reads the chats of a tier one by one: a chat is a case, and a batch of it is a session."""

    settings_type = BeamSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    benchmark: ClassVar[str | None] = "beam"
    category_names: Mapping[CategoryId, str] = dict(zip(ABILITIES, ABILITIES, strict=True))
    facet_names: Mapping[str, str] = {"difficulty": "Difficulty"}
    irregularity_notes: Mapping[str, str] = {
        "uncited": (
            "evidence: {uncited} of {questions} questions have an answer but cite no message, "
            "and do not count in retrieval metrics"
        ),
        "ambiguous": (
            "evidence: {ambiguous} cited ids belong to several messages, and are left out"
        ),
        "absent": "evidence: {absent} cited ids are not in their chat, and are left out",
        "leaves": "evidence: entries that are not ids, left out: {leaves}",
        "repeated_ids": (
            "evidence: {repeated_ids} messages repeat the id of another one; messages "
            "are distinguished by their position"
        ),
        "undated": "time: batches without a date: {undated}",
        "earlier": (
            "time: {earlier} batches are dated before the previous batch; the chat's order is kept"
        ),
    }
    measure_names: Collection[str] = MEASURES
    settings: BeamSettings

    @cached_property
    def _items(self) -> dict[str, int]:
        """Number of rubric items by question, for the cases read so far."""
        return {}

    @property
    def _folder(self) -> Path:
        return self.path / "chats" / TIERS[self.settings.tier]

    def files_read(self) -> Sequence[FileInfo]:
        """The tier's files of chats and questions; of each chat only the file the corpus reads."""
        below = f"chats/{TIERS[self.settings.tier]}/"
        files = {file.name: file for file in self.info.files if file.name.startswith(below)}
        left_out = WHOLE if self.settings.corpus == "runner" else TRUNCATED
        for name in list(files):
            folder, _, file = name.rpartition("/")
            if file == TRUNCATED:
                files.pop(f"{folder}/{left_out}", None)

        return tuple(files.values())

    def expected_counts(self) -> Mapping[str, int]:
        cases = sum(file.name.endswith(QUESTIONS) for file in self.files_read())
        if not cases:
            return self.info.counts

        # Two questions for each of ten abilities.
        return {"cases": cases, "questions": 20 * cases}

    def open(self) -> LoadedDataset:
        """Compares every file of the tier with the registered one."""
        paths = chain.from_iterable((chat.chat, chat.questions) for chat in self._chats)
        digests, unlike = {}, []
        for path in paths:
            name = path.relative_to(self.path).as_posix()
            digest = digests[name] = digest_file(self.info, path)
            part = self.info.part_named(name)
            # A demonstration is compared with the file that ships with memeval.
            if not is_registered(part, path, digest) and digest != shipped_digest(part):
                unlike.append(path)

        if unlike and self.files_read() and not self.settings.allow_unpinned:
            raise self._refusal(unlike)

        notes = self._notes_on_files()
        digest = digest_of_files(digests)
        return self._loaded(digest, pinned=not unlike, notes=notes, excerpt=bool(notes))

    def _refusal(self, unlike: Sequence[Path]) -> UserError:
        """The error for files that are not the registered ones."""
        others = ""
        if len(unlike) > 1:
            others = f", nor are {len(unlike) - 1} others"

        return UserError(
            f"data set '{self.info.name}': {unlike[0]} is not the registered file{others}.",
            f"the registered files:  move them away, then {self._fetch_command}",
            "or use these files anyway:  dataset.allow_unpinned=true (reports will say so)",
        )

    def _notes_on_files(self) -> tuple[str, ...]:
        """Notes for a report if chats of the tier are not on this machine."""
        if not self.files_read():
            return ()

        expected = self.expected_counts()["cases"]
        if len(self._chats) >= expected:
            return ()

        numbers = ", ".join(str(chat.number) for chat in self._chats)
        return (
            f"an excerpt: {len(self._chats)} of the {expected} chats of {self._folder.name} "
            f"({numbers}); its figures are not those of the whole tier",
        )

    @property
    def _fetch_command(self) -> str:
        settings = f"dataset.tier={self.settings.tier} dataset.corpus={self.settings.corpus}"
        return f"python -m memeval data fetch {self.info.name} {settings}"

    @cached_property
    def _chats(self) -> tuple[ChatFiles, ...]:
        """The chats of the tier whose files are all on this machine, by number.

        Raises `UserError` if there are none.
        """
        self._check_form()
        chats = []
        for folder in self._folder.iterdir():
            if folder.is_dir() and folder.name.isascii() and folder.name.isdigit():
                chat, questions = folder / self._chat_name(folder), folder / QUESTIONS
                if chat.is_file() and questions.is_file():
                    chats.append(ChatFiles(number=int(folder.name), chat=chat, questions=questions))

        if not chats:
            raise UserError(
                f"data set '{self.info.name}': {self._folder} has no chat with both the file for "
                f"dataset.corpus={self.settings.corpus} and questions.",
                f"get them:  {self._fetch_command}",
            )

        return tuple(sorted(chats, key=lambda chat: chat.number))

    def _check_form(self) -> None:
        """Raises `UserError`, listing the tiers found, if the tier's folder is missing."""
        if self._folder.is_dir():
            return
        if not self.path.exists():
            raise missing(self.info, self.path)
        files = chain([self.path], self.path.rglob("*"))
        if any(file.suffix in EXPORTS for file in files):
            raise UserError(
                f"data set '{self.info.name}': {self.path} is an export from Hugging Face; "
                "memeval reads the files of BEAM's repository.",
                f"get them:  {self._fetch_command}",
            )

        problem = f"data set '{self.info.name}': {self._folder} is missing"
        tiers = [tier for tier, name in TIERS.items() if (self.path / "chats" / name).is_dir()]
        if tiers:
            verb = "is" if len(tiers) == 1 else "are"
            problem += f"; {', '.join(tiers)} {verb} there"

        hints = [f"get it:  {self._fetch_command}"]
        for folder in self.path.parents:
            if (folder / "chats").is_dir():
                hints.append(f"or name the folder that contains `chats`:  dataset.path={folder}")
                break

        raise UserError(f"{problem}.", *hints)

    def _chat_name(self, folder: Path) -> str:
        """Name of the chat's file that the corpus reads."""
        if self.settings.corpus == "full":
            return WHOLE

        # A missing truncated file is not replaced with the whole file, which is another corpus.
        name = (folder / TRUNCATED).relative_to(self.path).as_posix()
        if (folder / TRUNCATED).is_file() or any(file.name == name for file in self.info.files):
            return TRUNCATED

        return WHOLE

    def read(self) -> Iterator[EvalCase]:
        self.irregularities.clear()
        for files in self._chats:
            chat = read_chat(files.chat, cut_markers=self.settings.cut_markers)
            case = self._case(files, chat)
            self.irregularities.update(chat.irregularities)
            # A chat has up to 10M tokens: release it before the next one is read.
            del chat
            yield case
            del case

    def _case(self, files: ChatFiles, chat: Chat) -> EvalCase:
        name = f"{self._folder.name}/{files.number}"
        questions = read_questions(files.questions, name, chat)
        self.irregularities["questions"] += len(questions)
        for question in questions:
            self._items[question.question_id] = len(question.rubric)

        return EvalCase(
            case_id=name,
            sessions=tuple(chat.sessions),
            questions=questions,
            speakers=("user", "assistant"),
        )

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return official_measures(records, self._items)
