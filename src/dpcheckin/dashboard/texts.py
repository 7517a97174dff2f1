"""The same plan as a shell command, as Python, as JSON: texts that run and give the same epsilon.

Numbers are written so that they are read back as the very same floats.
"""

from __future__ import annotations

import json
from typing import Any

from dpcheckin.dashboard.form import Form
from dpcheckin.numerals import typed

_MAKERS = {
    "any": "any_pure",
    "binary": "binary_response",
    "dary": "dary_response",
    "hemisphere": "hemisphere",
    "privunit": "privunit",
    "laplace": "laplace",
    "gaussian": "gaussian",
}


def texts(form: Form, guarantee: dict[str, Any] | None = None) -> dict[str, str]:
    """All three; the JSON holds the guarantee too once it is known."""
    return {"shell": shell(form), "python": python(form), "json": as_json(form, guarantee)}


def shell(form: Form, *, leave_out: str | None = None, target: float | None = None) -> str:
    """`dpcheckin epsilon …`, or `dpcheckin plan …` for a target and the parameter left out."""
    words = ["dpcheckin", "epsilon" if target is None else "plan"]
    if target is not None:
        words += ["--epsilon", typed(target)]
    if form.protocol != "shuffled-check-in":
        words += ["--protocol", form.protocol]
    shown = {"population": form.population, **form.relevant}
    for name in (
        "population", "rate", "cohort", "slots", "check_in_probability", "rounds", "colluding",
        "dropout", "local_epsilon",
    ):  # fmt: skip
        value = shown.get(name)
        if value is None or name == leave_out or (name in ("colluding", "dropout") and not value):
            continue
        words += [f"--{name.replace('_', '-')}", typed(value)]
    if form.is_gaussian and target is None:
        words += ["--noise-multiplier", typed(form.noise_multiplier)]
    elif form.randomizer != "any":
        words += ["--randomizer", form.randomizer_text()]
    words += ["--delta", typed(form.delta)]
    return " ".join(words)


def python(form: Form) -> str:
    """A few lines that print the guarantee."""
    if form.protocol == "distributed-check-in":
        return (
            "from dpcheckin.protocols import DistributedCheckIn\n"
            "from dpcheckin.randomizers import Gaussian\n\n"
            "plan = DistributedCheckIn(\n"
            f"    population={_grouped(form.population)},\n    rate={_literal(form.rate)},\n"
            f"    rounds={_grouped(form.rounds)},\n"
            f"    randomizer=Gaussian({_literal(form.noise_multiplier)}),\n)\n"
            f"stated = plan.guarantee(delta={_literal(form.delta)})\n{_PRINT}"
        )
    if form.protocol == "random-check-in-averaged":
        return (
            "from dpcheckin import RunQuestion\n\n"
            "run = RunQuestion(\n"
            f'    protocol="{form.protocol}",\n    population={_grouped(form.population)},\n'
            f"    slots={_grouped(form.slots)},\n"
            f"    local_epsilon={_literal(form.local_epsilon)},\n)\n"
            f"stated = run.guarantee(delta={_literal(form.delta)})\n{_PRINT}"
        )
    kind = _KINDS[form.protocol]
    lines = [f"    {line},\n" for line in _arguments(form)]
    maker = _MAKERS[form.randomizer]
    return (
        f"from dpcheckin import {', '.join(sorted((kind, maker, 'guarantee')))}\n\n"
        f"one = {kind}(\n{''.join(lines)})\n"
        f"stated = guarantee([(one, {_grouped(form.windows)})], delta={_literal(form.delta)})\n"
        f"{_PRINT}"
    )


_PRINT = "print(stated)\nprint(stated.epsilon.upper)"
_KINDS = {
    "shuffled-check-in": "CheckInRound",
    "subsampled-shuffle": "SubsampleRound",
    "shuffle": "ShuffleRound",
    "random-check-in-fixed": "WindowRound",
    "random-check-in-sliding": "WindowRound",
}


def _arguments(form: Form) -> list[str]:
    shown = form.about.fields
    extra = {"dary": form.symbols, "privunit": form.dimension}.get(form.randomizer)
    noise = form.noise_multiplier if form.is_gaussian else form.local_epsilon
    arguments = [_literal(noise)] + ([] if extra is None else [_grouped(extra)])
    counts = {name: getattr(form, name) for name in shown if name in _COUNTS}
    if _KINDS[form.protocol] == "WindowRound" and "population" in counts:
        counts["others"] = counts.pop("population") - 1
    lines = [f"{name}={_grouped(count)}" for name, count in counts.items()]
    if "rate" in shown:
        lines.append(f"rate={_literal(form.rate)}")
    lines.append(f"pair={_MAKERS[form.randomizer]}({', '.join(arguments)})")
    for name in ("check_in_probability", "colluding", "dropout"):
        usual = 1.0 if name == "check_in_probability" else 0.0
        if name in shown and getattr(form, name) != usual:
            lines.append(f"{name}={_literal(getattr(form, name))}")
    return lines


_COUNTS = ("population", "cohort", "slots")


def as_json(form: Form, guarantee: dict[str, Any] | None = None) -> str:
    """The choices that matter, and what `dpcheckin epsilon --json` says about them."""
    content: dict[str, Any] = {"plan": form.relevant}
    if guarantee is not None:
        content["guarantee"] = guarantee
    return json.dumps(content, indent=2, ensure_ascii=False)


def _literal(value: float) -> str:
    """The number in Python."""
    return typed(value).replace("/", " / ")


def _grouped(value: int) -> str:
    return f"{value:_}"
