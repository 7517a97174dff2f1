"""Tables and figures of the papers, recomputed with our bounds beside them."""

from dpcheckin.report.reproduce import Reproduced, names, reproduce

__all__ = ["Reproduced", "names", "reproduce"]
