"""Replaces personal data by steady placeholders: `<email-3>` is one address throughout.

Strings that look like a secret are found by `memeval.text.secret_shapes`. Patterns find forms and
not meanings: a name is only found if it is listed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from memeval.text.secret_shapes import without_shapes

EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?![\w-])")
IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
IP = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:]|\.\d)"
)
PHONE = re.compile(
    r"(?<![\w.+-])(?:"
    r"(?:\+|00)[1-9]\d{0,2}(?:[ ./-]?\(?\d{1,5}\)?){2,6}"
    r"|\(\d{2,5}\)[ ./-]?\d{3,4}(?:[ ./-]?\d{2,4}){1,3}"
    r"|\d{3}[ .-]\d{3}[ .-]\d{4}"
    r"|0\d{1,4}[ /-]\d{3,4}(?:[ -]?\d{2,4}){1,3}"
    r")(?![\w-]|\.\d)"
)
LEAST_DIGITS, MOST_DIGITS = 7, 15
"""Of a phone number (ITU-T E.164)."""


@dataclass
class Redactor:
    """Replaces, and remembers what it replaced. `names` are replaced whatever their case."""

    names: Iterable[str] = ()
    originals: dict[str, str] = field(default_factory=dict)
    """By placeholder, in the order in which they were found."""
    _placeholders: dict[tuple[str, str], str] = field(default_factory=dict)
    _kinds: dict[str, int] = field(default_factory=dict)
    _short: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many different values of each kind were replaced."""
        return self._kinds

    def redact(self, text: str) -> str:
        """The text with placeholders."""
        text = without_shapes(text, partial(self._placeholder, "secret"))
        for kind, pattern, is_one in KINDS:
            text = pattern.sub(partial(self._replace, kind, is_one), text)

        if self._named is not None:
            text = self._named.sub(partial(self._replace, "name", _always), text)

        return text

    def redact_short(self, text: str) -> str:
        """As `redact`, for a name or an id that comes again and again."""
        if text not in self._short:
            self._short[text] = self.redact(text)

        return self._short[text]

    @cached_property
    def _named(self) -> re.Pattern[str] | None:
        # The longest first: "Ben Oduya" goes before "Ben".
        names = sorted({name.strip() for name in self.names if name.strip()}, key=len, reverse=True)
        if not names:
            return None

        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)

    def _replace(self, kind: str, is_one: Callable[[str], bool], match: re.Match[str]) -> str:
        return self._placeholder(kind, match[0]) if is_one(match[0]) else match[0]

    def _placeholder(self, kind: str, value: str) -> str:
        key = (kind, _plain(kind, value))
        if key not in self._placeholders:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            placeholder = f"<{kind}-{self._kinds[kind]}>"
            self._placeholders[key] = placeholder
            self.originals[placeholder] = value

        return self._placeholders[key]


def _plain(kind: str, value: str) -> str:
    """A value in one spelling: blanks in a number and the case of an address change nothing."""
    if kind in ("card", "iban", "phone"):
        return re.sub(r"[^\w+]", "", value)

    return value if kind == "secret" else value.casefold()


def _always(_: str) -> bool:
    return True


def _is_iban(value: str) -> bool:
    """Whether the check digits are right (ISO 13616: the rest of a division by 97 is 1)."""
    plain = value.replace(" ", "")
    turned = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(mark, 36)) for mark in turned)) % 97 == 1


def _is_card(value: str) -> bool:
    """Whether the check digit is right (ISO/IEC 7812: Luhn's sum ends in 0)."""
    digits = [int(mark) for mark in value if mark.isdecimal()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return any(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_ip(value: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False

    # "::" alone is punctuation of programs.
    return address.version == 4 or len(value) > 4


def _is_phone(value: str) -> bool:
    return LEAST_DIGITS <= sum(mark.isdecimal() for mark in value) <= MOST_DIGITS


KINDS = (
    ("email", EMAIL, _always),
    ("iban", IBAN, _is_iban),
    ("card", CARD, _is_card),
    ("ip", IP, _is_ip),
    ("phone", PHONE, _is_phone),
)
