"""Divides lower-cased text into sentences as NLTK's Punkt tokenizer does (Kiss & Strunk, 2006).

Written out for the same reason as the rules of words (see `memeval.metrics.nltk_words`). Of the
classic English model, only the abbreviations are included: its other parts depend on capitals,
which lower-cased text lacks, except for a few dozen collocations.
"""

import re
import string
from collections.abc import Iterator, Sequence
from itertools import zip_longest

_ABBREVIATIONS = """
a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t c.o.m.b c.v
calif chg cie co col colo conn corp
cos ct d d.c d.h d.w dec dr e e.f e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f g.k ga gen h
h.c h.f h.m i.m.s ill inc j.b j.c
j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a m.d.c m.j maj messrs mg mich minn
mr mrs ms n n.c n.d n.h n.j n.m n.v
n.y nev nov oct ok okla ore p p.a.m p.m pa ph.d prof r r.a r.h r.i r.j r.k r.t rep reps s s.a
s.a.y s.c s.g s.p.a s.s sen sep sept
sr st sw t t.j tenn tues u.k u.n u.s u.s.a u.s.s.r v va vs vt w w.c w.r w.va w.w wash wed wis yr
"""

ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Words whose full stop does not end a sentence."""

_ENDS = (".", "?", "!")
_NON_WORD = r"(?:[)\";}\]\*:@'({\[?!])"
_MULTI = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
_BORDER = re.compile(rf"[.?!](?=(?P<after>{_NON_WORD}|\s+(?P<next>\S+)))")
"""Possible end of a sentence, and the text after it."""
_TOKEN = re.compile(
    rf"""(
    {_MULTI}
    | (?=[^("`{{\[:;&\#*@)}}\]\-,])\S+?(?=\s|$|{_NON_WORD}|{_MULTI}|,(?=$|\s|{_NON_WORD}|{_MULTI}))
    | \S
    )""",
    re.VERBOSE,
)
_REALIGNED = re.compile(r'["\')\]}]+?(?:\s+|(?=--)|$)', re.MULTILINE)
"""Marks that close the preceding sentence."""
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*\.?$")
_INITIAL = re.compile(r"[^\W\d]\.$")
_ELLIPSIS = re.compile(r"\.\.+$")
_INNER_MARKS = tuple(";:,.!?")


def sentences(text: str) -> list[str]:
    """The sentences of the text, in order, without the space between them."""
    slices = list(_slices(text))
    divided: list[str] = []
    skipped = 0

    for whole, after in zip_longest(slices, slices[1:]):
        current = slice(whole.start + skipped, whole.stop)
        closing = _REALIGNED.match(text[after]) if after else None

        skipped = 0
        if after and closing:
            skipped = closing.end()
            current = slice(current.start, after.start + len(closing[0].rstrip()))
        if closing or text[current]:
            divided.append(text[current])

    return divided


def _slices(text: str) -> Iterator[slice]:
    start = 0
    holds: dict[str, bool] = {}  # by context: repeated ones are checked once
    for border, context in _candidates(text):
        if context not in holds:
            holds[context] = _holds_a_border(context)

        if holds[context]:
            yield slice(start, border.end())
            start = border.start("next") if border["next"] else border.end()

    yield slice(start, len(text.rstrip()))


def _candidates(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Possible sentence borders with the word before and the text after; only a word's last one."""
    previous: re.Match[str] | None = None
    word = slice(0, 0)

    for border in _BORDER.finditer(text):
        before = text[word.stop : border.start()]
        space = max(map(before.rfind, string.whitespace))
        # A blank at the start of `before` is not counted, as in NLTK.
        start = word.stop + space + 1 if space > 0 else word.start
        current = slice(start, border.start())
        if previous and word.stop <= current.start:
            yield previous, text[word] + previous[0] + previous["after"]

        previous, word = border, current

    if previous:
        yield previous, text[word] + previous[0] + previous["after"]


def _holds_a_border(context: str) -> bool:
    """Whether a sentence ends at any token before the last one."""
    tokens: list[str] = []
    for line in context.split("\n"):
        tokens += _TOKEN.findall(line)

    return any(_ends_sentence(tokens, position) for position in range(len(tokens) - 1))


def _ends_sentence(tokens: Sequence[str], position: int) -> bool:
    """Whether a sentence ends with the token at `position`, which is not the last one."""
    token, after = tokens[position], tokens[position + 1]
    if token in _ENDS:
        ends = True
    elif _ELLIPSIS.match(token) or not token.endswith(".") or token.endswith(".."):
        ends = False
    else:
        ends = token[:-1] not in ABBREVIATIONS and token[:-1].split("-")[-1] not in ABBREVIATIONS

    # An initial or a number ends no sentence if the next token can't begin one.
    initial = _INITIAL.match(token)
    if ends and token.endswith(".") and (initial or _NUMBER.match(token)):
        begins_none = after in _INNER_MARKS or after[0].islower()
        return not (begins_none or (initial and after[0].isupper()))

    return ends
