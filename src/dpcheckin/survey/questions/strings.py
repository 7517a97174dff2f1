"""Strings as numbers of so many bits, first character in front, as prefixes are.

A public alphabet makes characters short, and so strings long that still fit. Without one, letters are short, and an
escape stands before whatever is rarer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.survey.questions import ANY
from dpcheckin.survey.questions.query import no_value


@dataclass(frozen=True)
class Alphabet:
    """Strings of some characters as numbers of so many bits, first character in front, as prefixes are.

    Longer strings than fit are cut; shorter ones are filled with a code of their own.

    >>> few = Alphabet("abc", 8)
    >>> few.length, few.decode(few.encode(np.array(["ab", "cabba"])))
    (4, ('ab', 'cabb'))
    """

    characters: str
    bits: int

    def __post_init__(self) -> None:
        if len(set(self.characters)) < len(self.characters):
            raise InvalidParameter("alphabet", self.characters, "characters that differ")
        if self.length < 1:
            raise InvalidParameter("alphabet", self.characters, f"codes within {self.bits} bits")

    @property
    def width(self) -> int:
        """Bits of one character; code 0 is the end of a string."""
        return len(self.characters).bit_length()

    @property
    def length(self) -> int:
        """Characters that fit."""
        return self.bits // self.width

    def encode(self, texts: NDArray[np.str_]) -> NDArray[np.uint64]:
        """The number of each string."""
        codes = {character: i + 1 for i, character in enumerate(self.characters)}
        words = []
        for client, text in enumerate(texts):
            number = 0
            for place in range(self.length):
                character = str(text)[place : place + 1]
                if character and character not in codes:
                    raise no_value(text, client, f"characters of {self.characters}")
                number = number << self.width | codes.get(character, 0)
            words.append(number << (self.bits - self.length * self.width))
        return np.array(words, dtype=np.uint64)

    def decode(self, words: NDArray[np.uint64]) -> tuple[str, ...]:
        """The string of each number; codes that no character has become question marks."""
        texts = []
        for word in words:
            number = int(word) >> (self.bits - self.length * self.width)
            text = ""
            for place in reversed(range(self.length)):
                code = number >> (place * self.width) & ((1 << self.width) - 1)
                if code == 0:
                    break
                text += self.characters[code - 1] if code <= len(self.characters) else "?"
            texts.append(text)
        return tuple(texts)


_LETTERS = "abcdefghijklmnopqrstuvwxyz -"  # codes 1 to 28; 0 is the end of a string
_CODE, _DIGIT, _CAPITAL, _ESCAPE = 5, 29, 30, 31
_FOLLOWED = {_DIGIT: 4, _CAPITAL: _CODE, _ESCAPE: 16}  # by so many bits: a digit, its small letter, a unit of UTF-16


@dataclass(frozen=True)
class AnyString:
    """Any strings as numbers of so many bits: small letters, blank and hyphen have 5, digits 9, capitals 10, others 21.

    Signs beyond the first 65,536 (emoji) have 42. Strings are cut after the last character that fits.

    >>> some = AnyString(64)
    >>> some.decode(some.encode(np.array(["coffee shop", "tea 2", "東京都", "Zürich"], dtype=object)))
    ('coffee shop', 'tea 2', '東京都', 'Zürich')
    """

    bits: int

    def encode(self, texts: NDArray[np.generic]) -> NDArray[np.uint64]:
        """The number of each string."""
        known = {text: self._number(text) for text in set(map(str, texts))}
        return np.array([known[str(text)] for text in texts], dtype=np.uint64)

    def _number(self, text: str) -> int:
        number, left = 0, self.bits
        for sign in text:
            codes = list(_codes(sign))
            width = sum(bits for _, bits in codes)
            if width > left:
                break
            for code, bits in codes:
                number = number << bits | code
            left -= width
        return number << left

    def decode(self, words: NDArray[np.uint64]) -> tuple[str, ...]:
        """The string of each number; what no string has becomes a question mark."""
        return tuple(self._text(int(word)) for word in words)

    def _text(self, word: int) -> str:
        text, left = bytearray(), self.bits

        def read(bits: int) -> int:
            nonlocal left
            left -= bits
            return word >> left & ((1 << bits) - 1)

        while left >= _CODE and (code := read(_CODE)):
            behind = _FOLLOWED.get(code, 0)
            if behind > left:
                break
            text += _sign(code, read(behind)).to_bytes(2, "little")
        return text.decode("utf-16-le", "replace").replace("\ufffd", "?")


def _codes(sign: str) -> Iterator[tuple[int, int]]:
    """The codes of a character, each with its bits."""
    place, small = _LETTERS.find(sign), _LETTERS.find(sign.lower(), 0, 26)
    if place >= 0:
        yield place + 1, _CODE
    elif sign in "0123456789":
        yield from ((_DIGIT, _CODE), (int(sign), _FOLLOWED[_DIGIT]))
    elif small >= 0 and sign.isascii():
        yield from ((_CAPITAL, _CODE), (small + 1, _FOLLOWED[_CAPITAL]))
    else:
        units = sign.encode("utf-16-le", "surrogatepass")
        for i in range(0, len(units), 2):
            yield from ((_ESCAPE, _CODE), (int.from_bytes(units[i : i + 2], "little"), _FOLLOWED[_ESCAPE]))


def _sign(code: int, behind: int) -> int:
    """The unit of UTF-16 that a code and what follows it stand for; that of a question mark where there is none."""
    nothing = ord("?")
    if code == _ESCAPE:
        return behind
    if code == _DIGIT:
        return ord("0") + behind if behind < 10 else nothing
    if code == _CAPITAL:
        return ord(_LETTERS[behind - 1].upper()) if 1 <= behind <= 26 else nothing
    return ord(_LETTERS[code - 1])


def strings(alphabet: str, bits: int) -> Alphabet | AnyString:
    """How strings of an alphabet, or `ANY`, are numbers of so many bits."""
    return AnyString(bits) if alphabet == ANY else Alphabet(alphabet, bits)
