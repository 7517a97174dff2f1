"""Frozen questions to the command line, by command; those that end in errors are elsewhere."""

from __future__ import annotations

_EPSILON_LINES = (
    "--population 10000 --rate 0.01 --local-epsilon 2 --rounds 100 --delta 1e-4",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --randomizer binary",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --randomizer dary:5",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --randomizer hemisphere",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --randomizer privunit:50",
    "--population 500 --rate 0.1 --local-epsilon 2 --randomizer laplace",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --local-delta 1e-9",
    "--population 500 --rate 0.1 --rounds 3 --randomizer gaussian:3",
    "--population 500 --rate 0.1 --rounds 3 --noise-multiplier 5",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --colluding 0.2 --dropout 0.1",
    "--population 500 --rate 0.1 --local-epsilon 2 --rounds 3 --lowest-rate 0.05",
    "--population 500 --cohort 50 --local-epsilon 1 --protocol subsampled-shuffle --rounds 5",
    "--population 500 --rate 0.1 --local-epsilon 1 --protocol subsampled-shuffle --colluding 0.1",
    "--population 1000 --local-epsilon 1 --protocol shuffle",
    "--population 1000 --local-epsilon 1 --protocol full-shuffle --rounds 2 --colluding 0.3",
    # sums
    "--protocol distributed-check-in --population 500 --rate 0.1 --noise-multiplier 1 --delta 1e-5",
    "--protocol distributed-check-in --population 1000 --rate 0.05 --noise-multiplier 2 --rounds 50 --delta 1e-5",
    "--protocol distributed-check-in --population 60000 --rate 0.01 --noise-multiplier 0.5 --rounds 1000 --delta 1e-6",
    "--protocol distributed-check-in --population 2 --rate 0.5 --noise-multiplier 3 --rounds 2 --delta 1e-3",
    "--protocol distributed-check-in --population 1000 --rate 0.1 --noise-multiplier 1 --rounds 10 --delta 1e-12",
    "--protocol central --population 1000 --rate 0.01 --noise-multiplier 1 --rounds 100 --delta 1e-5",
    "--protocol central --population 60000 --rate 0.004 --noise-multiplier 0.8 --rounds 5000 --delta 1e-6",
    "--protocol central --population 10 --rate 0.5 --noise-multiplier 4 --delta 1e-3",
    "--protocol local-only --population 100 --local-epsilon 1 --rounds 10 --delta 1e-5",
    "--protocol local-only --population 100 --local-epsilon 2 --randomizer dary:5 --rounds 3 --delta 1e-5",
    "--protocol local-only --population 100 --noise-multiplier 5 --rounds 10 --delta 1e-5",
    # windows
    "--protocol random-check-in-fixed --population 500 --slots 50 --local-epsilon 1 --delta 1e-5",
    "--protocol random-check-in-fixed --population 500 --slots 100 --check-in-probability 0.5"
    " --local-epsilon 1 --rounds 2 --delta 1e-5",
    "--protocol random-check-in-fixed --population 500 --slots 50 --noise-multiplier 3 --delta 1e-5",
    "--protocol random-check-ins-averaged --population 500 --slots 50 --local-epsilon 1 --delta 1e-5",
    "--protocol random-check-in-averaged --population 1000 --slots 20 --local-epsilon 0.5 --rounds 3 --delta 1e-5",
    "--protocol random-check-in-sliding --population 500 --slots 50 --local-epsilon 1 --delta 1e-5",
    "--protocol random-check-in-sliding --population 500 --slots 100 --noise-multiplier 3 --delta 1e-5",
)

_DELTA_LINES = (
    "--epsilon 0.07354 --population 10000 --rate 0.01 --local-epsilon 2 --rounds 100",
    "--epsilon 0.02 --population 500 --rate 0.1 --randomizer gaussian:10 --rounds 3",
    "--epsilon 0.1 --population 500 --cohort 50 --local-epsilon 1 --protocol subsampled-shuffle",
    "--epsilon 0.1 --population 1000 --local-epsilon 1 --protocol shuffle --colluding 0.1",
    "--epsilon 0.2 --population 500 --rate 0.1 --local-epsilon 1 --dropout 0.2 --rounds 2",
)

_PLAN_LINES = (
    "--epsilon 0.5 --delta 1e-5 --population 5000 --rate 0.1 --local-epsilon 2",
    "--epsilon 0.5 --delta 1e-5 --population 5000 --rounds 20 --local-epsilon 2",
    "--epsilon 0.5 --delta 1e-5 --population 5000 --rounds 20 --rate 0.1",
    "--epsilon 0.5 --delta 1e-5 --rounds 20 --rate 0.1 --local-epsilon 2",
    "--epsilon 0.5 --population 1000 --rate 0.1 --rounds 1 --solve local-epsilon",
    "--epsilon 0.3 --rate 0.1 --local-epsilon 2 --rounds 1 --randomizer privunit:50",
    "--epsilon 0.01 --delta 1e-4 --rounds 1 --rate 0.1 --randomizer gaussian:20",
    "--epsilon 0.5 --cohort 100 --population 1000 --local-epsilon 1 --protocol subsampled-shuffle",
    "--epsilon 0.5 --population 1000 --local-epsilon 1 --protocol shuffle --colluding 0.2",
    "--epsilon 0.2 --population 1000 --rounds 1 --local-epsilon 1 --colluding 0.2 --dropout 0.1",
    "--epsilon 0.2 --rounds 1 --local-epsilon 1 --protocol shuffle",
    "--epsilon 0.5 --population 1000 --rounds 2 --protocol shuffle --randomizer dary:4",
)

_COMPARE_LINES = (
    "--population 10000 --rate 0.01 --local-epsilon 2 --rounds 100 --delta 1e-4",
    "--population 60000 --rate 0.0333 --local-epsilon 1 --rounds 1000",
    "--population 1000 --rate 0.1 --local-epsilon 0.5",
    "--population 1000 --rate 0.1 --local-epsilon 20 --delta 1e-3",
    "--population 1000 --rate 0.1 --noise-multiplier 3 --rounds 5",
    "--protocol subsampled-shuffle --population 10000 --cohort 100 --local-epsilon 1 --rounds 100",
    "--protocol subsampled-shuffle --population 1000 --cohort 100 --noise-multiplier 3 --rounds 5",
    "--protocol shuffle --population 5000 --local-epsilon 1",
    "--protocol shuffle --population 1000 --local-epsilon 0.3 --delta 1e-8",
    "--protocol shuffle --population 1000 --noise-multiplier 4 --rounds 2",
    "--protocol shuffle --population 10000 --local-epsilon 0.05 --local-delta 1e-20",
    "--protocol distributed-check-in --population 1000 --rate 0.1 --noise-multiplier 1 --rounds 20",
    "--protocol distributed-check-in-removal --population 1000 --rate 0.1 --noise-multiplier 1 --rounds 20",
    "--protocol random-check-in-fixed --population 1000 --slots 100 --local-epsilon 1",
    "--protocol random-check-in-fixed --population 1000 --slots 100 --local-epsilon 0.5"
    " --check-in-probability 0.5 --rounds 3",
    "--protocol random-check-in-averaged --population 1000 --slots 100 --local-epsilon 1",
    "--protocol random-check-in-sliding --population 1000 --slots 100 --local-epsilon 1",
    "--population 10000 --rate 0.05 --rounds 10 --variance 2000 --dimension 1000",
    "--population 1000 --rate 0.1 --local-epsilon 1 --over rounds --values 1,10",
)

_BOUNDS_LINES = ("--population 2000 --rate 0.05 --local-epsilon 1 --rounds 10 --delta 1e-5",)


def command_lines() -> list[str]:
    """Whole command lines, without `--json`."""
    commands = {
        "epsilon": _EPSILON_LINES,
        "delta": _DELTA_LINES,
        "plan": _PLAN_LINES,
        "compare": _COMPARE_LINES,
        "bounds": _BOUNDS_LINES,
    }
    return [f"dpcheckin {name} {_with_delta(name, line)}" for name, lines in commands.items() for line in lines]


def _with_delta(name: str, line: str) -> str:
    """The answers of these two were written when their delta was 1e-6 unless another was given."""
    asked = name in ("epsilon", "plan") and "--delta" not in line
    return f"{line} --delta 1e-6" if asked else line
