"""`dp.compare`: every bound about one run, side by side, each labelled as what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpcheckin.accounting.statements import rounds_in_words
from dpcheckin.display import COLOURS, Tabular, axes_for
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.numerals import count, open_probability
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.papers.entry import Setting
from dpcheckin.randomizers import Gaussian, IntegerVector, Randomizer, registry
from dpcheckin.report import compare as comparison
from dpcheckin.report.compare import Line


@dataclass(frozen=True)
class Comparison(Tabular):
    """Bounds about one run, the least epsilon first, those that do not apply last.

    Args:
        setting: The run.
        lines: The bounds.
    """

    setting: Setting
    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Line:
        return self.lines[index]

    @property
    def caption(self) -> str:
        s = self.setting
        return f"{s.protocol}: epsilon at delta = {s.delta:g} after {rounds_in_words(s.rounds)}"

    def records(self) -> list[dict[str, Any]]:
        """One row for every bound, those that do not apply included."""
        return [line.to_json() for line in self.lines]

    def shown(self) -> list[dict[str, str]]:
        return [
            {
                "ε": line.kind.figure(line.epsilon, 5),
                "kind": line.kind.value,
                "bound": line.name,
                "source": line.source,
                "note": line.note or "",
            }
            for line in self.lines
            if line.epsilon is not None
        ]

    def plot(self, axes: Any = None) -> Any:
        """One bar for every bound that applies, on a new figure or these axes; colour tells its kind."""
        axes = axes_for(axes, xlabel="ε", ylabel="")
        lines = [line for line in reversed(self.lines) if line.epsilon is not None]
        names = [f"{line.key} ({line.kind.value})" for line in lines]
        axes.barh(
            range(len(lines)),
            [line.epsilon or 0.0 for line in lines],
            color=[COLOURS[line.kind.value][0] for line in lines],
        )
        axes.set_yticks(range(len(lines)), names, fontsize=7)
        axes.set_xscale("log")
        return axes


def compare(
    population: int,
    rate: float | None = None,
    local_epsilon: float | None = None,
    rounds: int = 1,
    delta: float = DEFAULT_DELTA,
    **run: Any,
) -> Comparison:
    """Every published bound that speaks about a run, ours among them.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in to a round.
        local_epsilon: Epsilon of one report.
        rounds: Number of rounds, or windows.
        delta: Of the statements.
        run: What else `dp.epsilon` takes; `protocol` may be
            distributed-check-in-removal too. Published bounds apply where nobody colludes or drops out only.
    """
    setting = setting_of(
        population=population, rate=rate, local_epsilon=local_epsilon, rounds=rounds, delta=delta,
        **{"protocol": "shuffled-check-in", **run},
    )  # fmt: skip
    return Comparison(setting, tuple(comparison.compare(checked(setting))))


def setting_of(randomizer: str | Randomizer = "any", **run: Any) -> Setting:
    """The run as published bounds know it, which only hear of a local epsilon or of noise.

    The `randomizer` is given by name or itself, the `run` by the other parameters of `compare`.
    """
    if randomizer == "any":
        if (size := run.pop("dimension", None)) is not None:
            raise Superfluous("dimension", size, "leave it out without a --randomizer of vectors")
        return Setting(**run)
    numbers = {name: run.pop(name, None) for name in ("local_epsilon", "noise_multiplier", "dimension")}
    made = registry.randomizer(randomizer, local_delta=run.pop("local_delta", None) or None, **numbers)
    if isinstance(made, Gaussian):
        return Setting(**run, noise_multiplier=made.noise_multiplier)
    summed = isinstance(made, IntegerVector) and run["protocol"] == "distributed-check-in"
    pure = not summed and made.pair.pure
    return Setting(**run, local_epsilon=made.pair.local_epsilon if pure else None, randomizer=made)


def checked(setting: Setting) -> Setting:
    """The setting, if all that every bound needs is there and makes sense."""
    count("population", setting.population)
    count("rounds", setting.rounds)
    open_probability("delta", setting.delta)
    if setting.rate is not None and not 0.0 < setting.rate <= 1.0:
        raise InvalidParameter("rate", setting.rate, "above 0 and at most 1")
    known = (setting.local_epsilon, setting.noise_multiplier, setting.randomizer)
    if known == (None, None, None):
        raise InvalidParameter("local_epsilon", None, "a local epsilon or a noise multiplier")
    return setting
