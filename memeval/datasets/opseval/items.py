"""An item of OpsEval from its row, with a repair for each flaw in it."""

import re
from collections.abc import Mapping

from msgspec import Struct, field

CHINESE_SHARE = 0.01
"""Minimum share of Chinese characters among the letters of a row that counts as Chinese."""
REPAIRS: Mapping[str, str] = {
    "gold": "the gold's letters are written with blanks, marks, in lower case, or as a number",
    "range": "the gold names a choice that does not exist; it is dropped",
    "statement": "a statement without choices is given 正确 (A) and 错误 (B)",
    "labels": "a choice's label inside the question is misplaced or misspelt",
    "told": "the question gives the answer away; that part is cut off",
    "left_out": "left out: its choices or its gold can't be read",
}
"""Description of each kind of repair."""


class OpsEvalItem(Struct, frozen=True):
    row_id: str
    domain: str
    question: str
    """The question without its choices."""
    choices: tuple[str, ...] = ()
    right: tuple[int, ...] = ()
    multi_select: bool = False
    """Whether several choices may be chosen: as the row's type says, and always if the schema has
    no types.
    """
    gold: tuple[str, ...] = ()
    """The answer in words, or the texts of the right choices."""
    topics: tuple[str, ...] = ()
    solution: str = ""

    @property
    def kind(self) -> str:
        """`single` or `multiple` by the number of right choices, `free_text` without choices."""
        if not self.choices:
            return "free_text"

        return "single" if len(self.right) == 1 else "multiple"

    @property
    def language(self) -> str:
        """`zh` if Chinese characters are at least 1 % of all letters of question and choices,
        else `en`.
        """
        text = " ".join((self.question, *self.choices))
        chinese, latin = len(re.findall("[\u4e00-\u9fff]", text)), len(re.findall("[A-Za-z]", text))
        return "zh" if chinese and chinese >= CHINESE_SHARE * (chinese + latin) else "en"


class Repair(Struct, frozen=True):
    """One thing that was done about a dirty row."""

    row_id: str
    kind: str
    """One of `REPAIRS`."""
    description: str


class Rows(Struct):
    """Content read so far."""

    items: list[OpsEvalItem] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Number of rows of each domain, including those left out."""

    def repair(self, row_id: str, kind: str, description: str) -> None:
        self.repairs.append(Repair(row_id=row_id, kind=kind, description=description))
