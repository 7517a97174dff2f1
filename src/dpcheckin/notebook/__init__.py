"""What people call in a notebook: a run in plain names and numbers, and what can be asked about it.

`epsilon`, `delta`, `plan` and `compare` are offered by the front door, `import dpcheckin as dp`.
Values are shown as tables (`_repr_html_`), go into pandas (`to_frame`) and draw themselves
(`plot`).
"""

from dpcheckin.notebook.comparisons import Comparison, compare
from dpcheckin.notebook.plans import PlannedRun, plan
from dpcheckin.notebook.runs import delta, epsilon
from dpcheckin.notebook.sweeps import Sweep

__all__ = ["Comparison", "PlannedRun", "Sweep", "compare", "delta", "epsilon", "plan"]
