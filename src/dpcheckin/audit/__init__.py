"""Audits: attack the running code and see how much it gives away.

`check_plan` turns a plan into an attack on its own guarantee, `examine` carries it out within a
budget and returns a `Finding`: a lower bound on epsilon with stated confidence, valid whatever
the system under audit really does. See docs/audit.md.
"""

from dpcheckin.audit.betting.evidence import Counts, Stakes, clopper_pearson_epsilon, lower_epsilon
from dpcheckin.audit.budget import Budget
from dpcheckin.audit.checks.plans import check_plan, check_report, plan_named
from dpcheckin.audit.examination import Check, examine
from dpcheckin.audit.finding import Finding
from dpcheckin.audit.systems.base import BlackBox, OneReport, System
from dpcheckin.audit.systems.batches import Neighbours, RoundBatches, gathered
from dpcheckin.audit.systems.per_client import PerClient
from dpcheckin.audit.systems.simulated import Simulated

__all__ = [
    "BlackBox",
    "Budget",
    "Check",
    "Counts",
    "Finding",
    "Neighbours",
    "OneReport",
    "PerClient",
    "RoundBatches",
    "Simulated",
    "Stakes",
    "System",
    "check_plan",
    "check_report",
    "clopper_pearson_epsilon",
    "examine",
    "gathered",
    "lower_epsilon",
    "plan_named",
]
