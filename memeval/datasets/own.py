"""The base of data sets that read a user's own file, with its questions and categories."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from memeval.datasets.contract import Dataset
from memeval.errors import unknown
from memeval.records import AnswerKind, CategoryId, EvalQuestion


class OwnFile(Dataset):
    """A file that defines its own categories; each id is also its name."""

    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES, AnswerKind.CHOICES)
    category_names: Mapping[CategoryId, str] = {}
    """Empty: only the file names its categories."""

    def asks(self, question: EvalQuestion) -> bool:
        """Compares categories; `dataset.categories=[5]` also selects the category `5`."""
        chosen = self.settings.categories
        # The command line reads `5` as a number, and the file may have it as a string.
        return chosen is None or str(question.category) in map(str, chosen)

    def check_categories(self, known: Iterable[str]) -> None:
        """Raises `UserError` with the nearest names if a chosen category is not in the file."""
        names = set(known)
        for category in self.settings.categories or ():
            if str(category) not in names:
                raise unknown("value of dataset.categories", str(category), names)
