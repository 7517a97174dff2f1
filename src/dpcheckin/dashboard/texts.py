"""The same plan as a shell command, as Python, as JSON: texts that run and give the same epsilon.

Numbers are written so that they are read back as the very same floats.
"""

from __future__ import annotations

import json
from typing import Any

from dpcheckin.dashboard.form import Form
from dpcheckin.numerals import typed
from dpcheckin.randomizers import AnyRandomizer, Gaussian
from dpcheckin.randomizers.registry import typed_name


def texts(form: Form, guarantee: dict[str, Any] | None = None) -> dict[str, str]:
    """All three; the JSON holds the guarantee too once it is known."""
    return {"shell": shell(form), "python": python(form), "json": as_json(form, guarantee)}


def shell(form: Form, *, leave_out: str | None = None, target: float | None = None) -> str:
    """`dpcheckin epsilon …`, or `dpcheckin plan …` for a target and the parameter left out.

    Args:
        form: the plan.
        leave_out: what is solved for.
        target: the epsilon that is aimed at.
    """
    words = ["dpcheckin", "epsilon" if target is None else "plan"]
    if target is not None:
        words += ["--epsilon", typed(target)]
    for name, value in _options(form).items():
        if name != leave_out:
            text = value if isinstance(value, str) else typed(value)
            words += [f"--{name.replace('_', '-')}", text]
    return " ".join(words)


def python(form: Form) -> str:
    """A few lines that print the guarantee."""
    lines = [f"    {name}={_literal(value)},\n" for name, value in _options(form).items()]
    return (
        f"import dpcheckin as dp\n\nstated = dp.epsilon(\n{''.join(lines)})\n"
        "print(stated)\nprint(stated.epsilon.upper)"
    )


_IN_ORDER = (
    "population", "rate", "cohort", "slots", "check_in_probability", "rounds", "colluding",
    "dropout",
)  # fmt: skip
_USUAL = {"protocol": "shuffled-check-in", "randomizer": AnyRandomizer.name}


def _options(form: Form) -> dict[str, Any]:
    """What `dpcheckin epsilon` and `dp.epsilon` must be told; what they suppose is left out."""
    shown = {"population": form.population, **form.relevant}
    taken = {name: shown[name] for name in _IN_ORDER if name in shown}
    may_not_go_wrong = [name for name in ("colluding", "dropout") if not taken.get(name)]
    for name in may_not_go_wrong:
        taken.pop(name, None)
    named = typed_name(form.kind, shown, form.local)
    if form.local == "noise_multiplier" and named == Gaussian.name:
        named = _USUAL["randomizer"]  # a noise multiplier alone means it
    words = {"protocol": form.protocol, "randomizer": named}
    said = {name: text for name, text in words.items() if text != _USUAL[name]}
    protocol = {"protocol": said.pop("protocol")} if "protocol" in said else {}
    return {**protocol, **taken, form.local: form.noise, **said, "delta": form.delta}


def as_json(form: Form, guarantee: dict[str, Any] | None = None) -> str:
    """The choices that matter, and what `dpcheckin epsilon --json` says about them."""
    content: dict[str, Any] = {"plan": form.relevant}
    if guarantee is not None:
        content["guarantee"] = guarantee
    return json.dumps(content, indent=2, ensure_ascii=False)


def _literal(value: str | float) -> str:
    """The value in Python."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:_}" if isinstance(value, int) else typed(value).replace("/", " / ")
