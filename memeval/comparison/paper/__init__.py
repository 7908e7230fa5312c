"""The table of a paper: systems by metrics and categories, for LaTeX, Markdown, HTML and CSV."""

from memeval.comparison.paper.build import CATEGORIES, paper_table
from memeval.comparison.paper.differences import difference_table
from memeval.comparison.paper.formats import FORMATS
from memeval.comparison.paper.records import PaperTable

__all__ = ["CATEGORIES", "FORMATS", "PaperTable", "difference_table", "paper_table"]
