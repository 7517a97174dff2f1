"""Every option of a survey, described once; the command line takes its arguments from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.options import DEFAULT_DELTA, option
from dpcheckin.survey.questions import ANY, MISSING, QUERIES

if TYPE_CHECKING:
    from dpcheckin.survey.planning import Wish
    from dpcheckin.survey.questions.query import Query

QUESTION, _PRIVACY = "The question", "Privacy and error"


@dataclass(frozen=True)
class SurveyOptions:
    """What a survey is to find out, and what it may cost."""

    population: int | None = option(None, "Clients; a run takes the lines of its data.")
    epsilon: float | None = option(None, "Certified epsilon to keep to; 1 unless an error is wanted.", section=_PRIVACY)
    delta: float = option(DEFAULT_DELTA, "Delta of the guarantee.", section=_PRIVACY)
    error: float | None = option(None, "Wanted root mean squared error, instead of --epsilon.", section=_PRIVACY)
    largest_local_epsilon: float | None = option(
        None, "Most that may be left, over all rounds, if the shuffler colludes.", section=_PRIVACY
    )
    confidence: float = option(0.95, "Of the intervals.", section=_PRIVACY)
    simultaneous: bool = option(False, "All intervals are to hold at once.", section=_PRIVACY)
    rounds: int | None = option(None, "Rounds; chosen if left out.", section=_PRIVACY)
    rate: float | None = option(None, "Probability that a client reports in a round; 1 if left out.", section=_PRIVACY)
    randomizer: str | None = option(
        None,
        "dary, subset:W, unary, hadamard; levels:STEPS; flat, tree:B; hash:BITS; privunit or "
        "hemisphere, or one of your own; chosen if left out.",
        section=_PRIVACY,
    )
    colluding: float = option(0.0, "Fraction of clients working with the analyzer.", section=_PRIVACY)
    colluding_clients: str | None = option(
        None,
        "Numbers of lying clients, with commas, of which it is stated how far they can move a "
        "figure; 1,10,100 if left out.",
        section=_PRIVACY,
    )

    categories: str | None = option(None, "How many, names with commas, or @FILE with a name a line.", section=QUESTION)
    groups: str | None = option(None, "Of a histogram within each group: how many, names, or @FILE.", section=QUESTION)
    low: float | None = option(None, "Smallest number.", section=QUESTION)
    high: float | None = option(None, "Largest number.", section=QUESTION)
    bins: int = option(64, "Equal parts between --low and --high.", section=QUESTION)
    quantiles: str = option("0.25,0.5,0.75", "Probabilities with commas.", section=QUESTION)
    dimension: int | None = option(None, "Entries of a vector.", section=QUESTION)
    clip: float = option(1.0, "Largest length of a vector.", section=QUESTION)
    bits: int | None = option(None, "Bits of a value, 8 to 64; 24, or 64 of any string.", section=QUESTION)
    top: int = option(50, "Values to list.", section=QUESTION)
    false_positives: float = option(0.05, "Probability of listing anything that nobody holds.", section=QUESTION)
    alphabet: str = option("", "Characters of strings, or any: all strings; empty for numbers.", section=QUESTION)
    missing: str = option(
        "refuse",
        "Of clients without a value: refuse the file, drop them, or count them as a category.",
        section=QUESTION,
        choices=MISSING,
    )

    def query(self, kind: str) -> Query:
        """The question of a kind, one of `KINDS`, that is meant."""
        from dpcheckin.survey.questions.query import query_class

        make = query_class(kind)
        read = {"categories": self._categories, "quantiles": self._probabilities, "bits": self._bits}
        names = QUERIES[kind].options
        if self.groups is not None and kind != "histogram":
            raise Superfluous("groups", self.groups, f"leave it out: {kind} has none")
        if "low" in names and (self.low is None or self.high is None):
            raise InvalidParameter("low", self.low, f"given with --high, for {kind}")
        if "dimension" in names and self.dimension is None:
            raise InvalidParameter("dimension", None, "a whole number, for vector-mean")
        made = make(*(read[name]() if name in read else getattr(self, name) for name in names))
        asked: Query = made if self.groups is None else made.within(self.names("groups"))
        return asked

    def _probabilities(self) -> tuple[float, ...]:
        try:
            return tuple(float(part) for part in self.quantiles.split(","))
        except ValueError:
            raise InvalidParameter("quantiles", self.quantiles, "numbers with commas") from None

    def _bits(self) -> int:
        return self.bits or (64 if self.alphabet == ANY else 24)

    def _categories(self) -> tuple[str, ...] | int:
        names = self.names("categories")
        if names is None:
            raise InvalidParameter("categories", None, "a number, names with commas, or @FILE")
        return names

    def names(self, of: str) -> tuple[str, ...] | int | None:
        """The names that an option has, `of` categories or groups, or how many; None where it was left out."""
        text: str | None = getattr(self, of)
        if text is None or text.isdecimal():
            return text if text is None else int(text)
        if text.startswith("@"):
            path = Path(text[1:])
            if not path.is_file():
                raise InvalidParameter(of, text, "@ and the path of a file")
            return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
        return tuple(part.strip() for part in text.split(","))

    def wish(self, query: Query, population: int) -> Wish:
        """What a plan must keep to that asks this query of a population."""
        from dpcheckin.survey.planning import Wish

        same = ("delta", "error", "rounds", "rate", "largest_local_epsilon", "confidence", "colluding")
        asked = {name: getattr(self, name) for name in same}
        epsilon = 1.0 if self.epsilon is None and self.error is None else self.epsilon
        return Wish(
            query, population, epsilon=epsilon, mechanism=self.randomizer, colluding_clients=self._liars(), **asked
        )

    def _liars(self) -> tuple[int, ...] | None:
        text = self.colluding_clients
        if text is None:
            return None
        if not all(part.strip().isdecimal() for part in text.split(",")):
            raise InvalidParameter("colluding_clients", text, "whole numbers with commas")
        return tuple(int(part) for part in text.split(","))
