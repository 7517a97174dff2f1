"""Audits: attack the running code and see how much it gives away.

`check_plan` turns a plan into an attack on its own guarantee, `examine` carries it out within a budget and returns a
`Finding`: a lower bound on epsilon with stated confidence, valid whatever the system under audit really does. See
docs/audit.md.
"""

from dpcheckin.audit.budget import Budget as Budget
from dpcheckin.audit.evidence import Counts as Counts
from dpcheckin.audit.evidence import Stakes as Stakes
from dpcheckin.audit.evidence import clopper_pearson_epsilon as clopper_pearson_epsilon
from dpcheckin.audit.evidence import lower_epsilon as lower_epsilon
from dpcheckin.audit.examination import Check as Check
from dpcheckin.audit.examination import examine as examine
from dpcheckin.audit.finding import Finding as Finding
from dpcheckin.audit.plans import check_plan as check_plan
from dpcheckin.audit.plans import check_report as check_report
from dpcheckin.audit.plans import plan_named as plan_named
from dpcheckin.audit.simulated import PerClient as PerClient
from dpcheckin.audit.simulated import Simulated as Simulated
from dpcheckin.audit.systems import BlackBox as BlackBox
from dpcheckin.audit.systems import Neighbours as Neighbours
from dpcheckin.audit.systems import OneReport as OneReport
from dpcheckin.audit.systems import RoundBatches as RoundBatches
from dpcheckin.audit.systems import System as System
from dpcheckin.audit.systems import gathered as gathered
