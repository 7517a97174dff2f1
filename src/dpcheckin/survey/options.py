"""Every option of a survey, described once; the command line takes its arguments from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpcheckin.errors import InvalidParameter
from dpcheckin.options import DEFAULT_DELTA, option
from dpcheckin.survey.questions import MISSING, QUERIES

if TYPE_CHECKING:
    from dpcheckin.survey.planning import Wish
    from dpcheckin.survey.questions.query import Query

_QUESTION, _PRIVACY = "The question", "Privacy and error"


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

    categories: str | None = option(
        None, "How many, names with commas, or @FILE with a name a line.", section=_QUESTION
    )
    low: float | None = option(None, "Smallest number.", section=_QUESTION)
    high: float | None = option(None, "Largest number.", section=_QUESTION)
    bins: int = option(64, "Equal parts between --low and --high.", section=_QUESTION)
    quantiles: str = option("0.25,0.5,0.75", "Probabilities with commas.", section=_QUESTION)
    dimension: int | None = option(None, "Entries of a vector.", section=_QUESTION)
    clip: float = option(1.0, "Largest length of a vector.", section=_QUESTION)
    bits: int = option(24, "Bits of a value, 8 to 64.", section=_QUESTION)
    top: int = option(50, "Values to list.", section=_QUESTION)
    false_positives: float = option(0.05, "Probability of listing anything that nobody holds.", section=_QUESTION)
    alphabet: str = option("", "Characters of strings, or any: all strings; empty for numbers.", section=_QUESTION)
    missing: str = option(
        "refuse",
        "Of clients without a value: refuse the file, drop them, or count them as a category.",
        section=_QUESTION,
        choices=MISSING,
    )

    def query(self, kind: str) -> Query:
        """The question of a kind, one of `KINDS`, that is meant."""
        from dpcheckin.survey.questions.query import query_class

        make = query_class(kind)
        read = {"categories": self._categories, "quantiles": self._probabilities}
        names = QUERIES[kind].options
        if "low" in names and (self.low is None or self.high is None):
            raise InvalidParameter("low", self.low, f"given with --high, for {kind}")
        if "dimension" in names and self.dimension is None:
            raise InvalidParameter("dimension", None, "a whole number, for vector-mean")
        made: Query = make(*(read[name]() if name in read else getattr(self, name) for name in names))
        return made

    def _probabilities(self) -> tuple[float, ...]:
        try:
            return tuple(float(part) for part in self.quantiles.split(","))
        except ValueError:
            raise InvalidParameter("quantiles", self.quantiles, "numbers with commas") from None

    def _categories(self) -> tuple[str, ...] | int:
        text = self.categories
        if text is None:
            raise InvalidParameter("categories", None, "a number, names with commas, or @FILE")
        if text.isdecimal():
            return int(text)
        if text.startswith("@"):
            path = Path(text[1:])
            if not path.is_file():
                raise InvalidParameter("categories", text, "@ and the path of a file")
            return tuple(line.strip() for line in path.read_text().splitlines() if line.strip())
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
