"""All of the papers' tables and figures by name: panels with ours beside them, and training figures."""

from __future__ import annotations

from dpcheckin.papers.p0 import figures as p0
from dpcheckin.papers.p1 import figures as p1
from dpcheckin.papers.p2 import figures as p2
from dpcheckin.papers.p3 import figures as p3
from dpcheckin.papers.p4 import figures as p4
from dpcheckin.papers.panel import Panel
from dpcheckin.papers.training_figure import TrainingFigure

TRAINING: dict[str, TrainingFigure] = {**p0.TRAINING, **p1.TRAINING, **p3.TRAINING, **p4.TRAINING}
"""Training figures by name; `papers.training` plays them."""


def panels() -> dict[str, Panel]:
    """Every panel by name, in report order; parameters the papers leave out are named in its `about`."""
    first = [p1.table_2(), p4.table_1(), p4.figure_1a(), p1.figure_3(), p1.figure_5()]
    every = [*first, *p2.figure_2(), p2.windows(), *p3.figures(), p0.claim(), p3.claims()]
    return {panel.name: panel for panel in every}
