"""Differential privacy for fleets whose clients decide for themselves when to check in.

This file holds the version and the package's front door. The mathematics lives in
`dpcheckin.accounting`, the command line in `dpcheckin.cli`; `docs/architecture.md` maps the rest.
"""

__version__ = "0.1.0"
