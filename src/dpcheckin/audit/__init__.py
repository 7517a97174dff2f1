"""Audits: attack the running code and see how much it gives away.

`check_plan` turns a plan into an attack on its own guarantee, `examine` carries it out within a budget and returns a
`Finding`: a lower bound on epsilon with stated confidence, valid whatever the system under audit really does. See
docs/audit.md.
"""

from dpcheckin.audit.budget import Budget
from dpcheckin.audit.evidence import Counts, Stakes, clopper_pearson_epsilon, lower_epsilon
from dpcheckin.audit.examination import Check, examine
from dpcheckin.audit.finding import Finding
from dpcheckin.audit.plans import check_plan, check_report, plan_named
from dpcheckin.audit.simulated import PerClient, Simulated
from dpcheckin.audit.systems import BlackBox, Neighbours, OneReport, RoundBatches, System, gathered

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
