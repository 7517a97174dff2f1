"""What Flower's and Opacus's own accountants say of a run, and by how far they are off.

    python benchmarks/other_accountants.py [--json FILE]

Two kinds of runs. Where a trusted server adds the noise (central), every accountant means the same
mechanism, and their figures are held against ours, certified, with the numerical lower end beside
it. Where every report carries its own noise and the analyzer sees all of them, shuffled, neither
package has such an event. A user may type the noise of one report as if it were the server's, which
says too much, or that of the sum of a round's reports, as if only the sum were seen: that figure is
held against the proven lower bound of what the analyzer does see, and is no guarantee where it
lies below. What is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import _timing  # first: it limits the threads

import dpcheckin as dp

warnings.filterwarnings("ignore")


@dataclass(frozen=True)
class Run:
    """A run with Gaussian noise."""

    name: str
    population: int
    sample: int
    noise: float  # of a report if there is a shuffler, of the sum otherwise
    rounds: int
    delta: float
    shuffled: bool


RUNS = (
    Run("central, rate 1%, noise 1", 10_000, 100, 1.0, 1_000, 1e-5, False),
    Run("central, rate 1/30, noise 2", 60_000, 2_000, 2.0, 6_000, 1e-5, False),
    Run("central, rate 0.1%, noise 0.8", 100_000, 100, 0.8, 10_000, 1e-6, False),
    Run("check-in, rate 1%, reports with noise 2", 10_000, 100, 2.0, 100, 1e-5, True),
    Run("check-in, rate 1/30, reports with noise 4", 60_000, 2_000, 4.0, 1_000, 1e-5, True),
)


@dataclass(frozen=True)
class Line:
    """One figure about a run."""

    run: str
    who: str
    epsilon: float
    ours: float
    least: float

    @property
    def off(self) -> str:
        """How far from ours, and whether it can be true at all."""
        text = f"{100 * (self.epsilon / self.ours - 1):+.1f}%"
        return f"{text}, below what is proven necessary" if self.epsilon < self.least else text


def ours(run: Run) -> tuple[float, float]:
    """Certified epsilon, and what it cannot be below."""
    rate = run.sample / run.population
    if run.shuffled:
        one = dp.CheckInRound(run.population, rate, dp.gaussian(run.noise))
        rounds = [(one, run.rounds)]
        return (float(dp.guarantee(rounds, run.delta)), float(dp.lower_bound(rounds, run.delta)))
    found = dp.compose([(dp.SampledGaussianRound(rate, run.noise), run.rounds)]).epsilon(run.delta)
    return found.upper, found.lower


def flower(rate: tuple[int, int], noise: float, rounds: int, delta: float) -> float:
    """Flower's RdpAccountant, Poisson sampling."""
    from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, SamplingMethod
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

    relation, sampling = NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.POISSON
    accountant = RdpAccountant(PrivacyConfig(delta, rate[1], relation, sampling))
    accountant.compose(GaussianPrivacyEvent(noise, *rate), rounds)
    return float(accountant.get_epsilon(delta))


def opacus(kind: str) -> Callable[[tuple[int, int], float, int, float], float]:
    """One of Opacus's accountants."""

    def asked(rate: tuple[int, int], noise: float, rounds: int, delta: float) -> float:
        from opacus.accountants import create_accountant

        accountant = create_accountant(mechanism=kind)
        accountant.history = [(noise, rate[0] / rate[1], rounds)]
        return float(accountant.get_epsilon(delta))

    return asked


PEERS = {
    "Flower, RDP": ("flwr", flower),
    "Opacus, RDP": ("opacus", opacus("rdp")),
    "Opacus, PRV": ("opacus", opacus("prv")),
}


def figures(run: Run) -> list[Line]:
    """Ours, then every figure that a user of the others may type."""
    certified, least = ours(run)
    lines = [Line(run.name, "dpcheckin, certified", certified, certified, least)]
    typed = {"": run.noise}
    if run.shuffled:
        typed = {
            " with the noise of a report": run.noise,
            " with the noise of the sum": run.noise * math.sqrt(run.sample),
        }
    for who, (package, ask) in PEERS.items():
        if not _timing.installed(package):
            continue
        for how, noise in typed.items():
            value = ask((run.sample, run.population), noise, run.rounds, run.delta)
            lines.append(Line(run.name, who + how, value, certified, least))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    missing = sorted({p for p, _ in PEERS.values() if not _timing.installed(p)})
    found = []
    for run in RUNS:
        lines = figures(run)
        found += lines
        print(f"{run.name}: n = {run.population:,}, {run.rounds:,} rounds, delta = {run.delta:g}")
        print(f"  {'at least':45s} {lines[0].least:10.4g}")
        for line in lines:
            print(f"  {line.who:45s} {line.epsilon:10.4g}  {line.off}")
    if missing:
        print("not installed:", ", ".join(missing))
    if options.json:
        content = [{**asdict(line), "off": line.off} for line in found]
        options.json.write_text(json.dumps({"lines": content, **_timing.machine()}, indent=1))


if __name__ == "__main__":
    main()
