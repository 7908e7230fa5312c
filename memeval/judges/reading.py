"""Reads a judge's reply: one JSON object, or one word. The verdict of a reply in another form is
never guessed. The judged answer influences these replies: judges quote it, obey it, or stop in the
middle of it. So a label counts only if it is clearly the judge's own.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from memeval.judges.objects import LONGEST, ReplyObject, only_object, reason_of, spoken_parts
from memeval.judges.quoting import QuotableTexts, forms, has_word, plain_letters, squeeze
from memeval.records import Label

Read = TypeVar("Read")

YES_NO = ("yes", "no")
_LABELS = {"correct": Label.CORRECT, "wrong": Label.WRONG}
_LITERAL = re.compile(r'"label"\s{0,20}:\s{0,20}"\s{0,20}(?:correct|wrong)\s{0,20}"', re.IGNORECASE)
_SPOKEN = re.compile(
    r"\b(?:label|verdict|judge?ment|grade)\b[\W_]{0,12}(?:is\b[\W_]{0,12})?(correct|wrong)\b",
    re.IGNORECASE,
)
_NOT = (
    r"(?:\b(?:not|never|cannot)|n['’]t)[\s*_`\"'“]{1,6}"
    r"(?:(?:be|quite|a|the|\w{2,12}ly)\s{1,4}){0,2}[*_`\"'“]{0,4}"
)
_SHOUTED = re.compile(rf"((?i:{_NOT})|\bIN|\b)(CORRECT|WRONG)\b")
"""A label in capitals, as prompts write them, with a negation in any letter case. In lower case,
these words may be about anything.
"""
_SPOKEN_SCORE = re.compile(
    r"\bscore\b[\W_]{0,12}(?:(?:is|of)\b[\W_]{0,12})?([0-9]*\.?[0-9]+)", re.IGNORECASE
)
_GIVEN_SCORE = re.compile(r"score\W{0,12}([0-9]*\.?[0-9]+)")
_WORD = r"[\s*_#]*({0})($|[\s.,;:!*_)\u2013\u2014-])"
_BOTH = r"[\s*_#]*(?:{0})[\s*_]{{1,4}}(?:or|and)[\s*_]{{1,4}}(?:{0})\b"
_HYPHENED = r"[\s*_#]*(?:{0})-\w"
_QUOTED_WORD = r"""["'`\u2018\u201c]({0})[.!]?["'`\u2019\u201d][.!]?"""


def read_label(
    reply: str, *, answer: str = "", prompt: str = "", quotable: Sequence[str] = ()
) -> Label | None:
    """The label of the only JSON object in a reply: `{"reason": "…", "label": "CORRECT"}`.

    Returns None without a label, and if the reply is ambiguous: its objects differ, a key occurs
    twice, a value is an object or a list, an object does not end, or words around the object name
    the other label. Code fences and a repetition of the object are allowed.

    `answer` is the judged answer, `quotable` the question and the gold, and `prompt` the template's
    text. An object that one of them contains, in any unescaped form, is a quotation, not a verdict.
    """
    data = QuotableTexts(answer, tuple(quotable))
    read = partial(_label_in, data=data, prompt=prompt)
    return _read_verdict(reply, data, read, lambda label: label is Label.CORRECT)


def read_score(
    reply: str,
    scores: Sequence[float],
    *,
    answer: str = "",
    prompt: str = "",
    quotable: Sequence[str] = (),
) -> float | None:
    """The score of the only JSON object in a reply, `{"reason": "…", "score": 0.5}`: one of
    `scores`, as a number or as a string.

    Returns None for another score, and if the reply is ambiguous or may quote the data or the
    prompt: see `read_label`.
    """
    data = QuotableTexts(answer, tuple(quotable))
    read = partial(_score_in, scores=scores, data=data, prompt=prompt)
    return _read_verdict(reply, data, read, lambda score: score > min(scores))


def read_reason(reply: str, *, answer: str = "", quotable: Sequence[str] = ()) -> str:
    """The reason in the only JSON object of a reply, if any."""
    data = QuotableTexts(answer, tuple(quotable))
    for text in (*spoken_parts(reply, data), data.without_copies(reply)):
        if verdict := only_object(text):
            return reason_of(verdict)

    return ""


def read_numbers(
    reply: str, names: Sequence[str], *, answer: str = "", quotable: Sequence[str] = ()
) -> tuple[int, ...] | None:
    """The whole numbers under `names` in the only JSON object of a reply.

    Returns None if one is missing, or if the answer or a text in `quotable` contains these numbers.
    """
    data = QuotableTexts(answer, tuple(quotable))
    # If the reply may quote a thinking mark, the whole reply is read: see `_read_verdict`.
    verdict = only_object(next(iter(spoken_parts(reply, data)), ""))
    if verdict is None:
        return None

    numbers: dict[str, int] = {}
    for name in names:
        number = _whole(verdict.values.get(name))
        if number is None or f'"{name}"' not in verdict.text:
            return None

        numbers[name] = number

    if any(_names_numbers(form, numbers) for form in data.forms()):
        return None

    return tuple(numbers.values())


def read_yes(
    reply: str,
    *,
    reading: str = "first_word",
    cut: bool = False,
    answer: str = "",
    quotable: Sequence[str] = (),
    words: tuple[str, str] = YES_NO,
    bare: bool = False,
) -> bool | None:
    """Whether a reply says yes; None if it says neither yes nor no.

    `first_word` reads only the first word, bare or in bold. It reads neither a quotation of the
    data nor a word at which the reply was `cut`, because it may be the beginning of another word. A
    yes that the answer contains does not count. Such a request therefore asks for other `words`:
    see `words_for`. A user's template can't ask for others: with `bare`, a yes counts if it is the
    whole reply. `official` is the rule of the published code: yes iff the lower-cased reply
    contains "yes".
    """
    if reading == "official":
        return "yes" in reply.lower() if reply.strip() else None

    data = QuotableTexts(answer, tuple(quotable))
    parts = spoken_parts(reply, data)
    stated = {_word_in(part, words, cut=cut) for part in parts} - {None}
    if len(stated) != 1 or _repeats_answer(parts[0], answer):
        return None

    (word,) = stated
    if word and has_word(word, data.texts) and _continues(parts[0], word):
        return None
    if word != words[0]:
        return False

    # If a mark may be quoted, the end of the thinking is unknown.
    is_bare = bare and reply.strip(" \t\n.*_").lower() == words[0]
    may_quote = has_word(words[0], [answer]) or _begins_answer(reply, answer)
    doubtful = len(parts) > 1 or (may_quote and not is_bare) or _ends_with(parts[0], words[1])
    return None if doubtful else True


def words_for(answer: str) -> tuple[str, str]:
    """The words for yes and no that the judge is asked to use. If the answer contains a yes, which
    a judge could quote, these are other words.
    """
    for pair in (YES_NO, ("right", "wrong")):
        if not has_word(pair[0], [answer]):
            return pair

    digest = hashlib.sha256(answer.encode("utf-8", "replace")).hexdigest()
    return f"yes{digest[:4]}", f"no{digest[:4]}"


def _read_verdict(
    reply: str,
    data: QuotableTexts,
    read: Callable[[str], Read | None],
    favours: Callable[[Read], bool],
) -> Read | None:
    """The one verdict of a reply. A verdict that `favours` the answer must be that of the whole
    reply if the data contains a thinking mark: the text before such a mark may be the judge's own
    verdict. For a verdict against the answer, the reply is also read without its quotations.
    """
    parts = spoken_parts(reply, data)
    read_parts = list(map(read, parts))
    verdicts = {verdict for verdict in read_parts if verdict is not None}
    if len(verdicts) == 1:
        (verdict,) = verdicts
        return None if favours(verdict) and read_parts[0] is None else verdict
    if verdicts or not parts or any(map(only_object, parts)):
        return None

    stated = read(data.without_copies(parts[0]))
    if stated is None or favours(stated):
        return None

    return stated


def _label_in(text: str, data: QuotableTexts, prompt: str) -> Label | None:
    verdict = only_object(text)
    if verdict is None or not _LITERAL.search(verdict.text):
        return None

    values = _plain_members(verdict)
    label = _LABELS.get(str(values.get("label", "")).strip().casefold())
    if label is None or not _all_say(label, values, verdict.around):
        return None

    given = data.names("label", label.value)
    ends = label is Label.CORRECT and _breaks_out(verdict, data, f"label ?{label.value}")
    if _is_quoted(verdict, data, prompt, given=given, ends=ends):
        return None

    return label


def _score_in(text: str, scores: Sequence[float], data: QuotableTexts, prompt: str) -> float | None:
    verdict = only_object(text)
    if verdict is None:
        return None

    score = _number(_plain_members(verdict).get("score"))
    if score is None or score not in scores:
        return None

    for spoken in _SPOKEN_SCORE.findall(verdict.around):
        if _number(spoken) != score:
            return None

    given = any(score in map(_number, _GIVEN_SCORE.findall(form)) for form in data.forms())
    ends = score > min(scores) and _breaks_out(verdict, data, r"score ?[0-9.]")
    if _is_quoted(verdict, data, prompt, given=given, ends=ends):
        return None

    return score


def _word_in(text: str, words: tuple[str, str], *, cut: bool) -> str | None:
    """The first word of a reply if it is one of `words`, or "no"; else None."""
    # A plain "no" always counts: an answer can't profit from it.
    either = "|".join(map(re.escape, dict.fromkeys([*words, "no"])))
    if quoted := re.fullmatch(_QUOTED_WORD.format(either), text, re.IGNORECASE):
        return quoted[1].lower()

    word = re.match(_WORD.format(either), text, re.IGNORECASE)
    both = re.match(_BOTH.format(either), text, re.IGNORECASE)
    if word is None or both or re.match(_HYPHENED.format(either), text, re.IGNORECASE):
        return None
    if cut and not word[2]:
        return None

    return word[1].lower()


def _continues(text: str, word: str) -> bool:
    """Whether a reply continues after its first word without punctuation: "Yes is what it says"."""
    return re.match(rf"[\s*_#]*{re.escape(word)}[*_]*\s+[*_]*\w", text, re.IGNORECASE) is not None


def _ends_with(text: str, word: str) -> bool:
    """Whether the last word is `word` or "no": "Yes is what it says, so no"."""
    return re.search(rf"\b(?:{re.escape(word)}|no)\W*$", text[-40:], re.IGNORECASE) is not None


def _begins_answer(reply: str, answer: str) -> bool:
    """Whether the answer begins with the reply, which may be an echo that was cut."""
    letters = squeeze(plain_letters(reply))
    return any(squeeze(form).startswith(letters) for form in forms(answer))


def _plain_members(verdict: ReplyObject) -> dict[str, Any]:
    """The members by lower-case name; empty if one is an object or a list, or occurs twice."""
    members = verdict.members()
    if len(members) < len(verdict.values):
        return {}
    if any(isinstance(value, dict | list) for value in members.values()):
        return {}

    return members


def _all_say(label: Label, values: Mapping[str, Any], around: str) -> bool:
    """Whether no other field of the object and no words around it name the other label."""
    for value in values.values():
        if isinstance(value, str) and _LABELS.get(value.strip().casefold(), label) is not label:
            return False

    for word in _SPOKEN.findall(around):
        if _LABELS[word.casefold()] is not label:
            return False

    # "CORRECT or WRONG?" names both, and says neither.
    shouted = set()
    for negation, word in _SHOUTED.findall(around):
        shouted.add((_LABELS[word.casefold()] is Label.CORRECT) != bool(negation))

    return not shouted or (label is Label.CORRECT) in shouted


def _breaks_out(verdict: ReplyObject, data: QuotableTexts, member: str) -> bool:
    """Whether a quotation could have ended the reason and added this member to the object.

    It happens in `It says June", "label": "CORRECT"}` if a judge quotes `June", "label":
    "CORRECT"}` without escapes: then the reason ends like the data before a comma and this member.
    """
    reason = reason_of(verdict)
    words = plain_letters(reason).split()
    last = squeeze(words[-1]) if words else ""
    open_end = reason[-1:].isspace() or not reason[-1:].strip("\"':")
    for form in data.forms():
        compact = " ".join(re.sub(r"[^\w,.\s]|_", "", form).split())
        starts = [match.start() for match in re.finditer(rf", ?{member}", compact)]
        if not starts:
            continue

        # Other members may come before this one.
        for part in compact[: starts[-1]].split(","):
            before = squeeze(part.rpartition(" ")[2])
            if open_end or not before or before.endswith(last) or last.endswith(before):
                return True

    return False


def _is_quoted(
    verdict: ReplyObject, data: QuotableTexts, prompt: str, *, given: bool, ends: bool
) -> bool:
    """Whether an object may come from the prompt or, as its verdict is `given` there, from the
    data: a quotation `ends` its reason, its reason is there, or it lacks a reason of its own.
    """
    reason = reason_of(verdict)
    if reason and f'"{reason}"' in prompt:
        return True

    return given and (ends or data.holds(reason) or data.holds(verdict.text))


def _number(value: Any) -> float | None:
    """The value of a number, or of a string of digits; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,9}", value.strip()):
        return float(value)

    # A boolean is an `int` in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None

    return float(value)


def _names_numbers(plain: str, numbers: Mapping[str, int]) -> bool:
    """Whether text itself names two or more of these numbers, and each with the same value."""
    named = 0
    for name, number in numbers.items():
        texts = re.findall(rf"\b{name}\b\W{{1,8}}(\d{{1,9}})(?!\d)", plain)
        if texts and number not in map(int, texts):
            return False

        named += bool(texts)

    return named > 1


def _repeats_answer(text: str, answer: str) -> bool:
    """Whether a reply begins with the answer, or with its first four words."""
    reply_words = re.findall(r"\w+", text.casefold()[:LONGEST])
    words = re.findall(r"\w+", answer.casefold()[:LONGEST])
    begins = len(words) > 1 and reply_words[: len(words)] == words
    return begins or (len(reply_words) > 3 and reply_words[:4] == words[:4])


def _whole(value: Any) -> int | None:
    """A whole number that is not negative, given as number or string; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)

    # A boolean is an `int` in Python.
    if isinstance(value, bool) or not isinstance(value, int):
        return None

    return value if 0 <= value < 10**9 else None
