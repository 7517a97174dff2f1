"""Strings as whole numbers, first character in front, so that prefixes are prefixes of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.survey.questions.query import no_value


@dataclass(frozen=True)
class Alphabet:
    """Characters that a string may have, and how many of them fit into so many bits.

    Longer strings are cut; shorter ones are filled with a code of their own.

    Args:
        characters: all different.
        bits: of the number.

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
        found = []
        for client, text in enumerate(texts):
            number = 0
            for place in range(self.length):
                character = str(text)[place : place + 1]
                if character and character not in codes:
                    raise no_value(text, client, f"characters of {self.characters}")
                number = number << self.width | codes.get(character, 0)
            found.append(number << (self.bits - self.length * self.width))
        return np.array(found, dtype=np.uint64)

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
