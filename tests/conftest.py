"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# What decides whether a change lands gives the same verdict twice: the examples follow from the
# test alone. `HYPOTHESIS_PROFILE=explore` looks for new ones.
settings.register_profile("same-examples", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same-examples"))
