"""The page of a run to hand over: what `dpcheckin epsilon`, `plan` and `trust` write with `--out`."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.accounting import Guarantee, LowerBound
from dpcheckin.display import needed
from dpcheckin.document import Table
from dpcheckin.handover import hand_over
from dpcheckin.notebook.runs import Sweep, sweep_of
from dpcheckin.options import options_of
from dpcheckin.protocols.questions import RunQuestion

_POINTS = 12
_DELTAS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def check_page(path: Path) -> None:
    """Refuse what is no name of a page, or cannot be drawn here, before anything is computed."""
    from dpcheckin.errors import InvalidParameter

    if path.suffix.lower() not in (".html", ".htm") or path.is_dir() or _is_file(path.parent):
        raise InvalidParameter("out", str(path), "a file.html in a folder")
    needed("matplotlib.figure", "plot")


def _is_file(folder: Path) -> bool:
    return any(part.exists() and not part.is_dir() for part in (folder, *folder.parents))


def run_page(
    path: Path,
    question: RunQuestion,
    stated: Guarantee,
    *,
    least: LowerBound | None = None,
    tables: Sequence[Table] = (),
    drawn: Any = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the page of a run to `path`.

    `question` is the run, `stated` its guarantee and `least` its lower bound, if known; `tables` are added; something
    else may be `drawn` than ε against rounds; `say` is told what is computed.
    """
    run: dict[str, Any] = {
        option.name: value
        for option in options_of(RunQuestion)
        if (value := getattr(question, option.name)) != option.default or option.name in ("protocol", "rounds")
    }
    run["randomizer"] = question.reports().describe()
    say("the picture")
    if drawn is None:
        about = "Certified ε, and the proven lower bound: no guarantee can lie below it"
        png = picture(_curve(question, stated.delta), lower_bound=question.has_lower_bound)
    else:
        about, png = "ε of every bound; red: refuted, blue: a lower bound", picture(drawn)
    say("the certificate")
    run["delta"] = stated.delta
    proven = None if least is None else least.epsilon.lower
    hand_over(path, stated, run, least=proven, pictures={png: about}, tables=tables)


def _curve(question: RunQuestion, delta: float) -> Sweep:
    """The run with fewer rounds, or, where there are few, at other deltas."""
    if question.rounds >= 4 and question.stated_by_rounds:
        rounds = np.unique(np.geomspace(1, question.rounds, _POINTS).round().astype(int))
        return sweep_of("rounds", rounds, question, delta)
    return sweep_of("delta", np.array(sorted({*_DELTAS, delta})), question, delta)


def picture(curve: Any, **how: Any) -> bytes:
    """The PNG of something that draws itself, as `curve.plot(axes, …)` does."""
    figure = needed("matplotlib.figure", "plot").Figure(figsize=(9.0, 3.6), layout="constrained")
    curve.plot(figure.subplots(), **how)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=160)
    return stream.getvalue()
