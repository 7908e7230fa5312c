"""Sources of answers: a system's class, checked before anything is run, or a file of another
program's answers.
"""

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.config.classes import is_built_in, path_of
from memeval.config.identity import Digests
from memeval.config.schema import JUDGE, PREPARE
from memeval.config.settings import read_settings
from memeval.errors import MemevalError, UserError
from memeval.llm.prompts import load_builtin
from memeval.pipeline.isolate.call import SystemCall
from memeval.pipeline.open.code import class_identity
from memeval.systems.base import INGEST, RUNTIME, MemorySystem, SystemSettings
from memeval.text.shown import one_line

IMPORTED = "imported"
"""Replaces the name of the system for another program's answers."""


class Source(ABC):
    """Properties of the source of a cell's answers."""

    settings: SystemSettings
    module: str | None = None
    """The module of the code that answers; None if memeval does not run it."""
    own_prompt = False
    """Whether it only uses its own prompts for its answers."""
    ranks_part = False
    """Whether its ranking leaves out a part of the memory that the reader sees."""
    wants_evidence = False
    answer_style: str | None = None
    """The style in which it always answers; None: it uses the cell's style."""
    needs_language_model = False
    uses_llm_at_ingest = False
    has_tools = False
    """Whether it has tools for a model."""
    flags: tuple[str, ...] = ()
    """Words that every table shows next to the source's figures."""

    def check_use(self, *, reader: str, writer: str) -> None:
        """Raises `UserError` for settings incompatible with the cell's reader or writer."""

    @abstractmethod
    def digests(self) -> Digests:
        """Its contribution to the keys."""


class SystemSource(Source):
    """A memory system as its class describes it. Raises `UserError` naming the faulty method."""

    def __init__(
        self,
        system_class: type[MemorySystem],
        settings: SystemSettings,
        *,
        has_language_model: bool = True,
        reads_by_tools: bool = False,
    ) -> None:
        """Under `reads_by_tools`, the cell's model answers in place of the system's own."""
        self.system_class, self.settings = system_class, settings
        _check_constructor(system_class)

        # Resolved first: the class's other methods get the settings that result here.
        self.settings = self._ask_class("resolve_settings", has_language_model=has_language_model)
        self.module = system_class.__module__
        flags = self._words("flags", "words for the tables")
        self.flags = tuple(one_line(word, 40) for word in flags)
        always = system_class.own_prompt and not reads_by_tools
        self.own_prompt = always or bool(getattr(self.settings, "own_prompt", False))
        self.ranks_part = system_class.ranks_part
        self.wants_evidence = system_class.wants_evidence
        # A custom class gets no instance per user: its author must see whether it mixes users up.
        self.needs_instances = is_built_in(system_class) and not self._ask_class("knows_users")
        self.has_tools = system_class.tools is not MemorySystem.tools
        self.answer_style = self._style()
        self.needs_language_model = bool(self._ask_class("needs_language_model"))
        self.ingest_templates = self._words("ingest_templates", "names of prompt templates")
        for name in self.ingest_templates:
            load_builtin(name)

        self.files = self._files()
        self.uses_llm_at_ingest = bool(self._ask_class("uses_llm_at_ingest"))

    def digests(self) -> Digests:
        """Contribution of the system to the keys: its class, and the templates of its ingest."""
        digests = {"system": class_identity(self.system_class)}
        if self.uses_llm_at_ingest:
            for name in self.ingest_templates:
                digests[f"prompt {name}"] = load_builtin(name).sha256

        for path, content in self.files.items():
            digests[f"file {path}"] = content

        return {PREPARE: digests}

    def check_use(self, *, reader: str, writer: str) -> None:
        self._ask_class("check_use", reader=reader, writer=writer)

    def _style(self) -> str | None:
        style = self._ask_class("answer_style")
        if style is None:
            return None

        if not isinstance(style, str):
            raise UserError(
                f"{self._name_of('answer_style')} must return a style such as short, or None, but "
                f"returned {_quote(style)}"
            )

        load_builtin(f"answer_{style}")
        return str(style)

    def _files(self) -> dict[str, str]:
        """sha256 of each file that the class names."""
        digests = {}
        for path in self._ask_class("files"):
            try:
                content = Path(path).read_bytes()
            except (OSError, TypeError) as error:
                raise UserError(
                    f"{self._name_of('files')} names '{one_line(path, 80)}', which can't be read: "
                    f"{one_line(error)}"
                ) from error

            digests[Path(path).name] = hashlib.sha256(content).hexdigest()

        return digests

    def _words(self, method: str, expected: str) -> tuple[str, ...]:
        words = self._ask_class(method)
        if not isinstance(words, tuple | list) or not all(isinstance(word, str) for word in words):
            raise UserError(
                f"{self._name_of(method)} must return {expected}, but returned {_quote(words)}"
            )

        return tuple(words)

    def _ask_class(self, method: str, **options: Any) -> Any:
        try:
            return getattr(self.system_class, method)(self.settings, **options)
        except (MemevalError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # A `sys.exit` in a custom class would end the command silently.
            raise UserError(str(SystemCall("", self.system_class, method).fault(error))) from error

    def _name_of(self, method: str) -> str:
        return f"{path_of(self.system_class)}.{method}()"


@dataclass(frozen=True)
class ImportedSettings(SystemSettings):
    """The file from which the answers come."""

    # The digest is the identity: a moved file is the same source.
    file: str = field(default="", metadata=RUNTIME)
    sha256: str = field(default="", metadata=INGEST)
    only_listed: bool = field(default=False, metadata={"stage": "run"})
    """Whether only the questions that the file has a row for were asked."""
    judged_by: str = field(default="", metadata={"stage": JUDGE})
    """Under `judge=recorded`, the judge whose verdicts the file records."""


class ImportedSource(Source):
    """A file of answers, described like a system; no system is called."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.settings = read_settings(ImportedSettings, values)

    def digests(self) -> Digests:
        # The file's digest is among the settings.
        return {PREPARE: {"system": IMPORTED}}


def _check_constructor(system_class: type[MemorySystem]) -> None:
    try:
        inspect.signature(system_class).bind(None, None)
    except TypeError as error:
        raise UserError(
            f"{path_of(system_class)} can't be created from (settings, parts): {one_line(error)}",
            "it must take both:  "
            "def __init__(self, settings, parts): super().__init__(settings, parts)",
        ) from error
    except ValueError:  # no signature is available, as for classes in C
        return


def _quote(value: Any) -> str:
    return f"'{one_line(value, 60)}'"
