"""Replaces personal data with stable placeholders: `<email-3>` is the same address throughout.

Strings that look like a secret are found by `memeval.text.secret_shapes`. Patterns recognise forms,
not meanings: only listed names are found.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from unicodedata import normalize

from msgspec import Struct, field

from memeval.text.secret_shapes import without_shapes
from memeval.text.words import UNSPACED, is_unspaced

EMAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}(?:'[\w.+-]{1,64}){0,2}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?![\w-])"
)
IBAN = re.compile(
    r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", re.IGNORECASE
)
CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
IP = re.compile(
    r"(?<![\w.:])(?:"
    r"(?:::ffff:)?\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
    r"|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:]|\.\d))"
)
PHONE = re.compile(
    # Not the dates in 01.05.2024 09:30 and 17/05/2024 09:30.
    r"(?<![\w.+-])(?!0\d(?:[.-]\d\d[.-](?:19|20)\d\d\b|/(?:19|20)\d\d \d\d?:\d))(?:"
    r"(?:\+|00)[1-9]\d{0,2}(?:[ ./-]?\(?\d{1,5}\)?){2,6}"
    r"|\(\d{2,5}\)[ ./-]?\d{3,5}(?:[ ./-]?\d{2,4}){1,3}"
    # North America: area codes and exchange codes begin with 2 to 9.
    r"|(?:1[ .-])?\d{3}[ .-]\d{3}[ .-]\d{4}|[2-9]\d{2}[2-9]\d{6}"
    # With a leading 0 within a country, also in pairs of digits as in France.
    r"|0\d{1,4}[ /-]\d{3,4}(?:[ -]?\d{2,4}){1,3}|0[1-9](?:[ .-]?\d{2}){4}|0[1-9]\d{8,9}"
    # Without a 0, as in Spain, Poland and India.
    r"|[5-9]\d{2} \d{3} \d{3}|[6-9]\d{4} \d{5}"
    r")(?![\w-]|\.\d)"
)
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
    r"(?:(?:(?!-----).){0,10000}-----END [A-Z ]{0,30}PRIVATE KEY-----|[\w+/=\s]{0,10000})",
    re.DOTALL,
)
APOSTROPHES, HYPHENS = "'\u2019\u02bc", "\\-\u2010\u2011"
"""Signs that are interchangeable in names, for regex classes."""
OTHER_KIND = r"(?!(?<=<)(?:secret|email|iban|card|ip|phone)-\d+>)"
"""Fails at a placeholder: `email` may be among the names."""
MIN_DIGITS, MAX_DIGITS = 7, 15
"""Number of digits of a phone number (ITU-T E.164)."""
MIN_OF_CARD = 13


class Redactor(Struct, dict=True):
    """Replaces values, and remembers the replacements. `names` are replaced regardless of case."""

    names: Iterable[str] = ()
    originals: dict[str, str] = field(default_factory=dict)
    """The original values by placeholder, in the order in which they were found."""
    _placeholders: dict[tuple[str, str], str] = field(default_factory=dict)
    _kinds: dict[str, int] = field(default_factory=dict)
    _short: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of different replaced values of each kind."""
        return self._kinds

    def redact(self, text: str) -> str:
        text = PRIVATE_KEY.sub(partial(self._replace, "secret", len), text)
        text = without_shapes(text, partial(self._placeholder, "secret"))
        for kind, pattern, end in KINDS:
            text = pattern.sub(partial(self._replace, kind, end), text)

        if self._name_pattern is not None:
            text = self._name_pattern.sub(partial(self._replace, "name", len), text)

        return text

    def redact_short(self, text: str) -> str:
        """Like `redact`, for a name or an id that recurs: the result is remembered."""
        if text not in self._short:
            self._short[text] = self.redact(text)

        return self._short[text]

    @cached_property
    def _name_pattern(self) -> re.Pattern[str] | None:
        # The longest first: "Ben Oduya" before "Ben".
        names = sorted({" ".join(name.split()) for name in self.names}, key=len, reverse=True)
        spaced, joined = [], []
        for name in filter(None, names):
            # In a script without spaces between words, a name has no boundaries.
            if is_unspaced(name[0]) or is_unspaced(name[-1]):
                joined.append(name)
            else:
                spaced.append(name)

        patterns = []
        if spaced:
            # An id may have an underscore around a name.
            around = rf"[^\W_{UNSPACED}]"
            patterns.append(rf"(?<!{around}){OTHER_KIND}(?:{_pattern_of(spaced)})(?!{around})")
        if joined:
            patterns.append(_pattern_of(joined))

        return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def _replace(self, kind: str, end: Callable[[str], int], match: re.Match[str]) -> str:
        """The placeholder, and the rest of the match, which is not part of the value."""
        text, length = match[0], end(match[0])
        if not length:
            return text

        return self._placeholder(kind, text[:length]) + text[length:]

    def _placeholder(self, kind: str, value: str) -> str:
        key = (kind, _one_spelling(kind, value))
        if key not in self._placeholders:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            placeholder = f"<{kind}-{self._kinds[kind]}>"
            self._placeholders[key] = placeholder
            self.originals[placeholder] = value

        return self._placeholders[key]


def _pattern_of(names: Iterable[str]) -> str:
    spellings: dict[str, None] = {}
    for name in names:
        # A letter with an accent may be one character or two.
        for form in ("NFC", "NFD"):
            spellings[re.escape(normalize(form, name)).replace(r"\ ", r"\s+")] = None

    pattern = "|".join(spellings)
    for alike in (APOSTROPHES, HYPHENS):
        pattern = re.sub(rf"\\?[{alike}]", f"[{alike}]", pattern)

    return pattern


def _one_spelling(kind: str, value: str) -> str:
    """A value in one spelling, regardless of spaces in a number and the case of an address."""
    if kind in ("card", "iban", "phone"):
        return re.sub(r"[^\w+]", "", value).upper()
    if kind == "name":
        alike = re.sub(f"[{HYPHENS}]", "-", re.sub(f"[{APOSTROPHES}]", "'", value))
        return normalize("NFC", " ".join(alike.split())).casefold()

    return value if kind == "secret" else value.casefold()


def _longest_valid(is_one: Callable[[str], bool]) -> Callable[[str], int]:
    """Returns a function for the end of the longest valid value at the start of a match. The value
    must end where a group of digits ends.

    The next text may look like part of it: a card's expiry date, or four letters after an IBAN.
    """

    def end(value: str) -> int:
        ends = [mark.start() for mark in GROUP_END.finditer(value)]
        for length in (len(value), *reversed(ends)):
            if is_one(value[:length]):
                return length

        return 0

    return end


GROUP_END = re.compile(r"(?<=\w)[^\w]")


def _is_iban(value: str) -> bool:
    """Whether the check digits are right (ISO 13616: the remainder of a division by 97 is 1)."""
    plain = value.replace(" ", "")
    turned = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(mark, 36)) for mark in turned)) % 97 == 1


def _is_card(value: str) -> bool:
    """Whether the check digit is right (ISO/IEC 7812: Luhn's sum ends in 0)."""
    digits = [int(mark) for mark in value if mark.isdecimal()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    is_long = len(digits) >= MIN_OF_CARD
    return is_long and any(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_ip(value: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False

    # "::" alone is punctuation of programs.
    return address.version == 4 or len(value) > 4


def _is_phone(value: str) -> bool:
    return MIN_DIGITS <= sum(map(str.isdecimal, value)) <= MAX_DIGITS


KINDS = (
    ("email", EMAIL, len),
    ("iban", IBAN, _longest_valid(_is_iban)),
    ("card", CARD, _longest_valid(_is_card)),
    ("ip", IP, lambda value: len(value) * _is_ip(value)),
    ("phone", PHONE, _longest_valid(_is_phone)),
)
"""Each kind with its pattern, and a function for the value's end in a match; 0 if there is none."""
