"""Outcomes as JUnit XML, which CI services display."""

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from msgspec import Struct

from memeval.text.shown import one_line

LONGEST_TEXT = 2000


class JunitCase(Struct, frozen=True):
    name: str
    text: str
    problem: str | None = None
    """`failure`, `error` or `skipped`; None if it passed."""


def as_junit(suite: str, class_name: str, cases: Sequence[JunitCase]) -> str:
    """The file of a suite. XML can't contain control characters, so texts are put on one line."""
    root = ElementTree.Element("testsuite", name=suite, tests=str(len(cases)))
    problems = Counter(case.problem for case in cases)
    root.set("failures", str(problems["failure"]))
    root.set("errors", str(problems["error"]))
    root.set("skipped", str(problems["skipped"]))
    for case in cases:
        name, text = one_line(case.name, LONGEST_TEXT), one_line(case.text, LONGEST_TEXT)
        element = ElementTree.SubElement(root, "testcase", classname=class_name, name=name)
        if case.problem is not None:
            ElementTree.SubElement(element, case.problem, message=text)

        ElementTree.SubElement(element, "system-out").text = text

    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, "unicode")}\n'
