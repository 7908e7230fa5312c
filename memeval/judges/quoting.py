"""Finds what a judge's reply may have copied from the data of its request.

No object, mark or word that occurs in an answer is ever a verdict in its favour, however the answer
writes it. So texts are compared as they are and after each round of unescaping.
"""

import base64
import binascii
import html
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from string import ascii_lowercase
from urllib.parse import unquote

from msgspec import Struct

from memeval.llm.reply.text import THINKING_MARKS

ROUNDS = 6
"""Maximum rounds of unescaping: an escape may be escaped itself."""
LONG_ENOUGH = 12
"""Minimum characters of a text whose copy in a reply is recognised."""

_MAY_ESCAPE = re.compile(
    r"[\\%&=\U000e0000-\U000e007f]|[uU]\+|[\w+/-]{16}|(?:[0-9a-fA-F]{2}\W){12}"
)
# From left to right: the backslash of an escaped backslash does not begin an escape of its own.
_CODE = re.compile(
    r"\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})|"
    r"\\(?P<octal>[0-7]{3})|\\(?P<short>[nrtbfv\"'/\\])|"
    r"%u([0-9a-fA-F]{4})|=([2-7][0-9A-F])|\b[uU]\+([0-9a-fA-F]{4,6})\b"
)
_BLANKS = dict.fromkeys("nrtbfv", " ")
_BASE64 = re.compile(r"[\w+/-]{16,}={0,2}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ :]?){12,}")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")

_LATIN = {
    "a": "аαɑᴀ", "b": "ьвβʙ", "c": "сϲᴄ", "d": "ԁɗᴅ", "e": "еєεᴇɛ", "f": "ꜰƒ", "g": "ɡɢց",
    "h": "һհнʜ", "i": "іιıɪ", "j": "јϳᴊ", "k": "кκᴋ", "l": "ӏʟłǀ", "m": "мᴍ", "n": "пոɴη",
    "o": "оοօᴏø", "p": "рρᴘ", "q": "ԛգ", "r": "гʀᴦ", "s": "ѕꜱ", "t": "тτᴛ", "u": "υսᴜ",
    "v": "ѵνᴠ", "w": "ѡԝᴡω", "x": "хχ", "y": "уγʏү", "z": "ᴢʐ",
    "<": "‹〈⟨❮˂", ">": "›〉⟩❯˃", "/": "⁄∕⧸", "|": "∣│", ",": "،、‚ꓹ",
}  # fmt: skip
_LOOKALIKES: dict[int, str] = {}
for _letter, _others in _LATIN.items():
    _LOOKALIKES |= dict.fromkeys(map(ord, _others), _letter)
# Letters in squares and circles, and those that flags are made of.
for _start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6):
    _LOOKALIKES |= dict(enumerate(ascii_lowercase, _start))
_HARMONY = "<|channel|>"


def plain_letters(text: str) -> str:
    """Text in lower case, with lookalikes replaced by the letters that they look like, without
    accents and invisible characters.
    """
    if text.isascii():
        return text.lower()

    return _visible(text).casefold().translate(_LOOKALIKES)


def _visible(text: str) -> str:
    """Text without accents and invisible characters, and with one form of each letter."""
    return "".join(map(_plain, unicodedata.normalize("NFKD", text)))


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.category(character) in ("Cf", "Mn"):
        return ""

    return str(unicodedata.decimal(character, character))


def squeeze(text: str) -> str:
    """Only the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text)


@lru_cache(maxsize=64)
def forms(text: str) -> tuple[str, ...]:
    """Text in plain letters, unchanged and after each round of unescaping."""
    distinct = {plain_letters(text): None}
    for _ in range(ROUNDS):
        if text.isascii() and not _MAY_ESCAPE.search(text):
            break

        decoded = _unescaped(text)
        if decoded == text:
            break

        text = decoded
        distinct[plain_letters(text)] = None

    return tuple(distinct)


def _unescaped(text: str) -> str:
    """Text after one round: escapes of JSON, HTML, URLs and mail are decoded in place. Content in
    base64, in hexadecimal digits or in invisible tags is added after it.
    """
    # Words may look like base64, so the decoded text is added and replaces nothing.
    hidden = [part for part in _hidden(text) if part not in text]
    text = unquote(html.unescape(_visible(text)))
    return "\n".join([_CODE.sub(_decoded, text), *hidden])


def _decoded(escape: re.Match[str]) -> str:
    if short := escape["short"]:
        return _BLANKS.get(short, short)

    if octal := escape["octal"]:
        return chr(int(octal, 8))

    number = int(escape[escape.lastindex or 0], 16)
    return chr(number) if number < 0x110000 else ""


def _hidden(text: str) -> Iterator[str]:
    for tags in _TAGS.findall(text):
        yield "".join(chr(ord(tag) - 0xE0000) for tag in tags)

    for run in _BASE64.findall(text):
        bare = run.rstrip("=").replace("-", "+").replace("_", "/")
        padded = bare + "=" * (-len(bare) % 4)
        try:
            yield from _readable(base64.b64decode(padded))
        except binascii.Error:
            continue

    for run in _HEX.findall(text):
        yield from _readable(bytes.fromhex(re.sub(r"\W", "", run)))


def _readable(content: bytes) -> Iterator[str]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return

    if text.replace("\n", " ").isprintable():
        yield text


class QuotableTexts(Struct, frozen=True):
    """The texts of a request that a reply may quote."""

    answer: str = ""
    """The judged answer."""
    quotable: tuple[str, ...] = ()
    """Question and gold."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.answer, *self.quotable)))

    def forms(self) -> Iterator[str]:
        """Each text in all its unescaped forms."""
        for text in self.texts:
            yield from forms(text)

    def has_marks(self) -> bool:
        """Whether one of the texts has a thinking mark: one in a reply may then be a quotation."""
        for form in self.forms():
            if THINKING_MARKS.search(form) or _HARMONY in form or "think>" in form:
                return True

        return False

    def holds(self, text: str) -> bool:
        """Whether the texts contain this one, by its letters and digits; true if it has none."""
        searched = set(map(squeeze, forms(text)))
        if "" in searched:
            return True

        for form in self.forms():
            letters = squeeze(form)
            if any(wanted in letters for wanted in searched):
                return True

        return False

    def names(self, *words: str) -> bool:
        """Whether one of the texts contains all of these words."""
        for form in self.forms():
            letters = squeeze(form)
            if all(word in letters for word in words):
                return True

        return False

    def without_copies(self, reply: str) -> str:
        """A reply without its copies of these texts."""
        for text in self.texts:
            within = (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
            for copy in (text, text.strip(), *within):
                if len(copy) >= LONG_ENOUGH:
                    reply = reply.replace(copy, " ")

        return reply


def has_word(word: str, texts: Sequence[str]) -> bool:
    """Whether one of the texts, however escaped, has this whole word; its letters may be apart."""
    apart = r"[\W_]{0,3}".join(map(re.escape, word))
    pattern = re.compile(rf"(?<![^\W_]){apart}(?![^\W_])")
    encoded = [*_encoded(word), *_encoded(word.capitalize()), *_encoded(word.upper())]
    for text in texts:
        for form in forms(text):
            if pattern.search(form) or any(code in form for code in encoded):
                return True

    return False


def _encoded(word: str) -> Iterator[str]:
    """A word in base64 and in hexadecimal digits: too short for `forms` to decode it."""
    content = word.encode()
    yield base64.b64encode(content).decode().rstrip("=").lower()
    yield content.hex(" ")
