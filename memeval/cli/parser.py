"""The parser of a command's own arguments."""

from __future__ import annotations

import argparse
from typing import NoReturn, Self

from memeval.errors import UserError


class Parser(argparse.ArgumentParser):
    """Reports a mistake as every command does: on one line, with the usage below it."""

    @classmethod
    def of(cls, command: str, description: str) -> Self:
        """The parser of a command; its usage names it as it is typed."""
        return cls(prog=f"python -m memeval {command}", description=description)

    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{self.prog.removeprefix('python -m memeval ')}: {message}",
            self.format_usage().strip(),
        )
