"""From options to randomizer and plan: all that a price depends on, and nothing of it needs torch."""

from __future__ import annotations

import math
from typing import cast

from dpcheckin.errors import InvalidParameter, NumericalFailure, Superfluous, Unreachable
from dpcheckin.learning.data.tables import read_windows
from dpcheckin.learning.options import RunOptions
from dpcheckin.options import changed
from dpcheckin.protocols import OwnWindows, Plan
from dpcheckin.protocols.questions import PROTOCOLS, RunQuestion, protocol_name
from dpcheckin.randomizers import Gaussian, IntegerVector, VectorRandomizer, registry
from dpcheckin.special.roots import root

_NOISE = (0.1, 1000.0)  # noise multipliers among which one is looked for
_LOCAL = (0.001, 30.0)  # the same for epsilons of one report
_DIGITS = 4  # of the one that is found, rounded to its safe side


def make_randomizer(options: RunOptions, dimension: int) -> VectorRandomizer:
    """The randomizer of a run for gradients of this dimension; one that the options have ready stands for itself."""
    given = {name: getattr(options, name) for name in ("local_epsilon", "noise_multiplier", "clip")}
    known = {**given, "dimension": dimension}
    made = registry.randomizer(options.randomizer, known)
    if not isinstance(made, VectorRandomizer):
        raise InvalidParameter("randomizer", made.describe(), "one that randomizes vectors")
    return made


def aimed(options: RunOptions, population: int, dimension: int) -> RunOptions:
    """The options with the least noise at which all their rounds cost at most their target epsilon, if they have one.

    What is looked for is the noise multiplier, or the epsilon of a report where the randomizer has none, for gradients
    of this dimension in this population.
    """
    target, given = options.epsilon, cast(object, options.randomizer)
    if target is None:
        return options
    if not 0 < target < math.inf:
        raise InvalidParameter("epsilon", target, "a finite number above 0")
    if not isinstance(given, str) or ":" in given:
        raise Superfluous("epsilon", target, "leave it out where the randomizer brings its own noise")
    takes = getattr(registry.kind_named(given), "__dataclass_fields__", {})
    noisy = "noise_multiplier" in takes or options.protocol == "central"
    name, ends = ("noise_multiplier", _NOISE) if noisy else ("local_epsilon", _LOCAL)

    def noised(value: float) -> RunOptions:
        return changed(options, {"epsilon": None, name: value})

    def excess(value: float) -> float:
        tried = noised(value)
        plan = make_plan(tried, population, make_randomizer(tried, dimension))
        try:
            spent = plan.epsilon(options.delta).upper
        except NumericalFailure:  # so little noise that no epsilon can be stated
            return math.inf
        return math.log(max(spent, 1e-300) / target)

    low, high = ends
    private, loud = (high, low) if noisy else (low, high)
    if excess(private) > 0:
        raise Unreachable(f"epsilon = {target:g} is passed by the rounds whatever the noise of a report: fewer rounds")
    if excess(loud) <= 0:
        return noised(loud)
    place = math.exp(root(lambda x: excess(math.exp(x)), math.log(low), math.log(high), absolute=1e-5))
    unit = 10.0 ** (math.floor(math.log10(place)) + 1 - _DIGITS)
    safer, steps = (math.ceil, 1) if noisy else (math.floor, -1)
    count = safer(place / unit)
    while excess(round(count * unit, 9)) > 0:
        count += steps
    return noised(round(count * unit, 9))


def _own_windows(options: RunOptions, population: int, randomizer: VectorRandomizer) -> Plan:
    """Random check-ins in the windows of a file; the slots end with the last window."""
    assert options.windows is not None
    windows = read_windows(options.windows)
    if windows.population != population:
        raise InvalidParameter("windows", f"{windows.population:,} rows", f"{population:,}, one for each client")
    if options.check_in_probability != 1 or options.repetitions != 1:
        raise InvalidParameter("windows", str(options.windows), "the only word on probabilities")
    batch = options.minibatch
    slots = options.slots or -(-(windows.last + 1) // batch) * batch
    return OwnWindows(slots, randomizer, windows, batch)


def make_plan(options: RunOptions, population: int, randomizer: VectorRandomizer) -> Plan:
    """The plan of a run by its options, for a population whose reports a randomizer makes."""
    name = protocol_name(options.protocol)
    fields = PROTOCOLS[name].fields
    in_slots = "slots" in fields
    spread = options.lowest_rate is not None or options.dropout
    if spread and "dropout" not in fields:
        raise InvalidParameter("protocol", options.protocol, "shuffled-check-in with these rates")
    if isinstance(randomizer, IntegerVector) and name != "distributed-check-in":
        raise InvalidParameter("randomizer", options.randomizer, "used with distributed-check-in")
    slotted = options.check_in_probability != 1 or options.repetitions != 1
    if slotted and not in_slots:
        raise InvalidParameter("protocol", options.protocol, "random-check-in-… with these options")
    if options.windows is not None:
        if name != "random-check-in-fixed":
            raise InvalidParameter("protocol", options.protocol, "random-check-in-fixed with --windows")
        return _own_windows(options, population, randomizer)
    trusted = Gaussian(options.noise_multiplier, options.clip)
    return RunQuestion.of(
        name,
        population,
        options.repetitions if in_slots else options.rounds,
        randomizer=trusted if name == "central" else randomizer,
        rate=options.rate,
        cohort=max(1, round(options.rate * population)),
        slots=options.slots or population,
        check_in_probability=options.check_in_probability,
        dropout=options.dropout,
        **({"lowest_rate": options.lowest_rate} if spread else {}),
    ).plan(options.minibatch)


def plan_alone(options: RunOptions) -> Plan | None:
    """The plan of options that say it without records and a model; None where those have a say in it."""
    if options.population is None or options.by_owner or options.windows is not None:
        return None
    given = {name: getattr(options, name) for name in ("local_epsilon", "noise_multiplier", "clip")}
    try:
        made = registry.randomizer(options.randomizer, given)
    except InvalidParameter:  # it needs the model's size, or is none
        return None
    return make_plan(options, options.population, made) if isinstance(made, VectorRandomizer) else None
