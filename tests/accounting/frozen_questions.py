"""The questions whose answers are frozen in `frozen_figures.json`; how they are asked is elsewhere.

A question is text. Either a Python expression in the names that `dpcheckin.accounting` exports, or
a command line that begins with `dpcheckin`. Nothing here may name what lives inside the package.

Left out on purpose are figures that are known to be wrong or loose in ways that will be mended:
lower ends for atoms that differ when swapped, atoms whose swapped direction has the larger delta,
reports with a delta in windows, sums below delta = 1e-15. So are questions whose answers consist of
little but round-off (an epsilon near 1e-8, a delta of 1e-20 by a transform): they differ in the
fifth digit from one processor to the next.
"""

from __future__ import annotations

from frozen_command_lines import command_lines


def _guarantees() -> list[str]:
    """(rounds, how often, delta): the whole statement, the local figures included."""
    plain = "CheckInRound(1000, 0.1, {})"
    asked = [
        # one round and several with every randomizer
        *((plain.format(pair), 1, 1e-6) for pair in _EVERY_PAIR),
        *((plain.format(pair), 20, 1e-5) for pair in _CHEAP_PAIRS),
        # populations
        ("CheckInRound(1, 0.5, binary_response(1.0))", 3, 1e-3),
        ("CheckInRound(2, 0.5, any_pure(1.0))", 1, 1e-2),
        ("CheckInRound(2, 0.5, any_pure(1.0))", 3, 1e-2),
        ("CheckInRound(3, 0.25, any_pure(2.0))", 2, 1e-4),
        ("CheckInRound(3, 0.25, gaussian(2.0))", 2, 1e-2),
        ("CheckInRound(6, 0.5, laplace(1.0))", 1, 0.05),
        ("CheckInRound(7, 0.5, laplace(1.0))", 1, 0.05),
        ("CheckInRound(10**9, 0.001, any_pure(1.0))", 1, 1e-10),
        ("CheckInRound(10**9, 1e-9, any_pure(4.0))", 1, 1e-11),
        # rates
        ("CheckInRound(1000, 0.0, any_pure(1.0))", 5, 1e-6),
        ("CheckInRound(1000, 1e-9, any_pure(1.0))", 5, 1e-12),
        ("CheckInRound(1000, 1.0, any_pure(1.0))", 2, 1e-6),
        ("CheckInRound(1000, 0.999, dary_response(1.0, 4))", 2, 1e-6),
        # local epsilons
        ("CheckInRound(1000, 0.1, any_pure(0.01))", 10, 1e-6),
        ("CheckInRound(1000, 0.1, any_pure(20.0))", 1, 1e-2),
        ("CheckInRound(100_000, 0.01, any_pure(8.0))", 10, 1e-6),
        # rounds
        ("CheckInRound(10_000, 0.01, any_pure(2.0))", 100, 1e-4),
        ("CheckInRound(60_000, 1 / 30, any_pure(2.0))", 6000, 1e-5),
        # deltas
        ("CheckInRound(1000, 0.1, any_pure(1.0))", 10, 1e-2),
        ("CheckInRound(1000, 0.1, any_pure(1.0))", 10, 1e-9),
        ("CheckInRound(1000, 0.1, any_pure(1.0))", 10, 1e-12),
        ("CheckInRound(1000, 0.1, any_pure(1.0))", 10, 1e-15),
        # people who collude, drop out or differ
        ("CheckInRound(1000, 0.1, any_pure(1.0), colluding=0.25)", 10, 1e-6),
        ("CheckInRound(1000, 0.1, any_pure(1.0), dropout=0.2)", 10, 1e-6),
        ("CheckInRound(1000, 0.1, any_pure(1.0), lowest_rate=0.05)", 10, 1e-6),
        ("CheckInRound(1000, 0.1, dary_response(2.0, 3), colluding=0.1, dropout=0.1, lowest_rate=0.08)", 3, 1e-6),
        ("SubsampleRound(1000, 100, any_pure(1.0))", 1, 1e-6),
        ("SubsampleRound(1000, 100, any_pure(1.0))", 20, 1e-5),
        ("SubsampleRound(1000, 100, privunit(2.0, 50))", 5, 1e-6),
        ("SubsampleRound(1000, 100, gaussian(3.0))", 5, 1e-6),
        ("SubsampleRound(1000, 100, laplace(1.0))", 1, 1e-6),
        ("SubsampleRound(1000, 100, any_pure(1.0), colluding=0.2)", 5, 1e-6),
        ("SubsampleRound(1000, 1000, hemisphere(1.0))", 1, 1e-6),
        ("SubsampleRound(1000, 0, any_pure(1.0))", 3, 1e-6),
        ("SubsampleRound(3, 1, any_pure(1.0))", 2, 1e-3),
        ("SubsampleRound(10**9, 10**6, any_pure(1.0))", 1, 1e-10),
        ("ShuffleRound(1000, any_pure(1.0))", 1, 1e-6),
        ("ShuffleRound(1000, any_pure(1.0))", 10, 1e-6),
        ("ShuffleRound(1000, dary_response(2.0, 10))", 1, 1e-6),
        ("ShuffleRound(1000, privunit(2.0, 100))", 3, 1e-6),
        ("ShuffleRound(1000, any_pure(1.0), colluding=0.5)", 2, 1e-6),
        ("ShuffleRound(1, binary_response(1.0))", 1, 1e-3),
        ("ShuffleRound(2, binary_response(1.0))", 2, 1e-3),
        ("ShuffleRound(10**9, any_pure(3.0))", 1, 1e-10),
        ("LocalRound(any_pure(1.0))", 1, 1e-6),
        ("LocalRound(any_pure(1.0), 0.1)", 30, 1e-6),
        ("LocalRound(laplace(0.5), 0.5)", 30, 1e-5),
        ("LocalRound(gaussian(5.0))", 10, 1e-6),
        ("LocalRound(approximate(1.0, 1e-9))", 10, 1e-6),
        ("WindowRound(100, any_pure(1.0))", 1, 1e-6),
        ("WindowRound(100, any_pure(1.0))", 5, 1e-6),
        ("WindowRound(100, any_pure(1.0), 0.5)", 3, 1e-6),
        ("WindowRound(100, any_pure(1.0), elapsed=30)", 1, 1e-6),
        ("WindowRound(100, any_pure(1.0), others=499)", 1, 1e-5),
        ("WindowRound(100, any_pure(1.0), 0.5, 60, 999)", 2, 1e-5),
        ("WindowRound(100, gaussian(3.0))", 2, 1e-6),
        ("WindowRound(100, gaussian(3.0), others=999)", 1, 1e-5),
        ("WindowRound(100, laplace(1.0))", 1, 1e-6),
        ("WindowRound(50, dary_response(2.0, 4))", 2, 1e-6),
        ("WindowRound(1, any_pure(1.0))", 1, 1e-6),
    ]
    return [f"guarantee([({one}, {count})], {delta!r})" for one, count, delta in asked]


_CHEAP_PAIRS = (
    "any_pure(1.0)",
    "binary_response(2.0)",
    "hemisphere(2.0)",
    "dary_response(2.0, 3)",
    "dary_response(4.0, 100)",
    "privunit(2.0, 50)",
    "gaussian(3.0)",
    "laplace(1.0)",
    "approximate(1.0, 1e-10)",
    "from_atoms([0.5, 1.0, 2.0], [0.2, 0.7, 0.1])",
)
_EVERY_PAIR = (
    *_CHEAP_PAIRS,
    "privunit(4.0, 1000)",
    "gaussian(2.0)",
    "gaussian(50.0)",
    "laplace(4.0)",
    "approximate(4.0, 1e-8)",
    "from_profile(lambda a: np.maximum(np.maximum((2 - a) / 3, 1 - a), 0), local_epsilon=math.log(2.0))",
)

_MIXED = (
    "[(CheckInRound(1000, 0.1, any_pure(1.0)), 10), (CheckInRound(500, 0.05, any_pure(2.0)), 5)]",
    "[(CheckInRound(1000, 0.1, any_pure(1.0)), 10), (SubsampleRound(1000, 50, any_pure(1.0)), 3),"
    " (ShuffleRound(2000, any_pure(1.0)), 2)]",
    "[(CheckInRound(1000, 0.1, privunit(2.0, 50)), 4), (LocalRound(any_pure(0.1), 0.5), 4)]",
    "[(CheckInRound(1000, 0.1, gaussian(3.0)), 3), (CheckInRound(1000, 0.1, any_pure(1.0)), 3)]",
    "[(WindowRound(100, any_pure(1.0)), 2), (CheckInRound(1000, 0.1, any_pure(1.0)), 2)]",
    "[(CheckInRound(1000, 0.1, any_pure(1.0)), 0), (ShuffleRound(1000, any_pure(1.0)), 1)]",
)

_LOWER = (
    ("CheckInRound(1000, 0.1, any_pure(1.0))", 1, 1e-6),
    ("CheckInRound(1000, 0.1, any_pure(0.5))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, any_pure(0.7))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, any_pure(4.0))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, binary_response(2.0))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, hemisphere(2.0))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, dary_response(2.0, 3))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, dary_response(4.0, 100))", 1, 1e-6),
    ("CheckInRound(1000, 0.1, privunit(2.0, 50))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, gaussian(3.0))", 10, 1e-6),
    ("CheckInRound(1000, 0.1, laplace(1.0))", 3, 1e-6),
    ("CheckInRound(10_000, 0.01, any_pure(2.0))", 100, 1e-4),
    ("CheckInRound(10**9, 0.001, any_pure(1.0))", 1, 1e-10),
    ("CheckInRound(2, 0.5, any_pure(1.0))", 1, 1e-3),
    ("CheckInRound(3, 0.25, any_pure(2.0))", 3, 1e-3),
    ("CheckInRound(100_000, 0.001, binary_response(1.0))", 1_000_000, 1e-6),
    ("SubsampleRound(1000, 100, any_pure(1.0))", 10, 1e-6),
    ("SubsampleRound(1000, 100, gaussian(3.0))", 3, 1e-6),
    ("ShuffleRound(1000, any_pure(1.0))", 1, 1e-6),
    ("ShuffleRound(1000, privunit(2.0, 100))", 3, 1e-6),
    ("LocalRound(any_pure(1.0), 0.5)", 10, 1e-6),
    ("WindowRound(100, any_pure(1.0))", 2, 1e-6),
    ("WindowRound(100, any_pure(1.0), others=499)", 2, 1e-5),
    ("WindowRound(100, gaussian(3.0))", 1, 1e-6),
)

_DELTAS = (
    ("CheckInRound(1000, 0.1, any_pure(1.0))", 1, 0.0),
    ("CheckInRound(1000, 0.1, any_pure(1.0))", 1, 0.05),
    ("CheckInRound(1000, 0.1, any_pure(1.0))", 1, 1.5),
    ("CheckInRound(1000, 0.1, any_pure(1.0))", 10, 0.1),
    ("CheckInRound(1000, 0.1, any_pure(1.0))", 10, 0.5),
    ("CheckInRound(1000, 0.1, privunit(2.0, 50))", 10, 0.2),
    ("CheckInRound(1000, 0.1, gaussian(3.0))", 1, 0.02),
    ("CheckInRound(1000, 0.1, gaussian(3.0))", 10, 0.05),
    ("CheckInRound(1000, 0.1, laplace(1.0))", 1, 0.05),
    ("CheckInRound(1000, 0.1, approximate(1.0, 1e-9))", 1, 0.05),
    ("SubsampleRound(1000, 100, any_pure(1.0))", 10, 0.1),
    ("ShuffleRound(1000, any_pure(1.0))", 1, 0.14867),
    ("ShuffleRound(1000, any_pure(1.0))", 4, 0.3),
    ("ShuffleRound(1, any_pure(1.0))", 1, 0.3),
    ("LocalRound(any_pure(1.0), 0.1)", 10, 1.0),
    ("LocalRound(gaussian(5.0))", 10, 3.0),
    ("WindowRound(100, any_pure(1.0))", 1, 0.2),
    ("WindowRound(100, any_pure(1.0), others=499)", 1, 0.1),
)

_OTHERS = (
    "compose([(CheckInRound(1_000_000, 0.01, any_pure(1.0)), 1_000_000)]).epsilon(1e-6)",
    # atoms that differ when swapped: the upper end only
    "compose([(CheckInRound(90, 0.2, from_atoms([1.5, 0.5], [0.5, 0.5])), 1)]).epsilon(1e-5).upper",
    "compose([(CheckInRound(90, 0.2, from_atoms([1.5, 0.5], [0.5, 0.5])), 5)]).epsilon(1e-5).upper",
    "compose([(LocalRound(from_atoms([1.5, 0.5], [0.5, 0.5])), 5)]).delta(1.0).upper",
    "local_guarantee([(any_pure(1.0), 0.1, 10)], 1e-6)",
    "local_guarantee([(any_pure(1.0), 1.0, 10), (gaussian(4.0), 0.5, 5)], 1e-6)",
    "local_guarantee([(approximate(1.0, 1e-10), 0.5, 10)], 1e-6)",
    "local_guarantee([(privunit(2.0, 50), 0.0, 10)], 1e-6)",
    # what a pair says of itself
    "privunit(4.0, 1000).profile(1.5)",
    "gaussian(1.0).profile(1.5)",
    "laplace(2.0).profile(1.5)",
    "dary_response(2.0, 5).profile(0.9)",
    "approximate(1.0, 1e-3).profile(3.0)",
)

_ERRORS = (
    "CheckInRound(0, 0.1, any_pure(1.0))",
    "CheckInRound(10, 1.5, any_pure(1.0))",
    "CheckInRound(10, 0.1, any_pure(1.0), lowest_rate=0.2)",
    "SubsampleRound(10, 11, any_pure(1.0))",
    "WindowRound(0, any_pure(1.0))",
    "WindowRound(10, any_pure(1.0), elapsed=11)",
    "any_pure(0.0)",
    "any_pure(1000.0)",
    "gaussian(0.01)",
    "dary_response(1.0, 1)",
    "compose([])",
    "compose([(ShuffleRound(10, gaussian(1.0)), 1)]).epsilon(1e-5)",
    "compose([(CheckInRound(10, 1.0, laplace(1.0)), 1)]).epsilon(1e-5)",
    "guarantee([(LocalRound(approximate(1.0, 1e-3)), 1)], 1e-6)",
    "guarantee([(CheckInRound(10, 0.1, any_pure(1.0)), 1)], 0.0)",
    "dpcheckin epsilon --population 0 --rate 0.1 --local-epsilon 1",
    "dpcheckin epsilon --population 10 --rate 2 --local-epsilon 1",
    "dpcheckin epsilon --population 10 --local-epsilon 1",
    "dpcheckin epsilon --population 10 --rate 0.1",
    "dpcheckin epsilon --population 10 --rate 0.1 --local-epsilon 1 --cohort 5",
    "dpcheckin epsilon --population 10 --rate 0.1 --randomizer gaussian",
    "dpcheckin epsilon --population 10 --protocol random-check-in-fixed --local-epsilon 1",
    "dpcheckin epsilon --population 10 --protocol shuffle --noise-multiplier 1",
    "dpcheckin epsilon --population 10 --protocol central --rate 0.1 --local-epsilon 1",
    "dpcheckin delta --epsilon -1 --population 10 --rate 0.1 --local-epsilon 1",
    "dpcheckin plan --epsilon 1 --population 100 --local-epsilon 1",
    "dpcheckin plan --epsilon 0.001 --population 10 --rate 0.5 --local-epsilon 4",
    "dpcheckin compare --population 100 --rate 0.1",
)


def questions() -> list[str]:
    """Every question, in the order of the file."""
    asked = [
        *_guarantees(),
        *(f"guarantee({run}, 1e-06)" for run in _MIXED),
        *(f"lower_bound({run}, 1e-06)" for run in _MIXED),
        *(f"lower_bound([({one}, {n})], {delta!r})" for one, n, delta in _LOWER),
        *(f"compose([({one}, {n})]).delta({epsilon!r})" for one, n, epsilon in _DELTAS),
        *_OTHERS,
        *command_lines(),
        *_ERRORS,
    ]
    assert len(set(asked)) == len(asked), "a question is asked twice"
    return asked
