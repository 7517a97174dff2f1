"""What people call in a notebook: a run in plain names and numbers, and what can be asked about it.

`epsilon`, `delta`, `plan` and `compare` are offered by the front door, `import dpcheckin as dp`. Values are shown as
tables (`_repr_html_`), go into pandas (`to_frame`) and draw themselves (`plot`).
"""

from dpcheckin.notebook.comparisons import Comparison as Comparison
from dpcheckin.notebook.comparisons import compare as compare
from dpcheckin.notebook.plans import PlannedRun as PlannedRun
from dpcheckin.notebook.plans import plan as plan
from dpcheckin.notebook.runs import Sweep as Sweep
from dpcheckin.notebook.runs import delta as delta
from dpcheckin.notebook.runs import epsilon as epsilon
