"""`report.html`: one file in which a person looks at a run, or at several side by side.

It opens from disk and in MLflow, without a server and without the network. Nothing is measured
here: figures come from the runs' summaries, and differences from a given comparison.
"""

from memeval.report.page.write import write_page

__all__ = ["write_page"]
