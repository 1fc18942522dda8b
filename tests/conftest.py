"""Settings of the whole suite: how many examples Hypothesis makes, and nothing else."""

import os

from hypothesis import HealthCheck, settings

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# The suite makes the same examples everywhere; HYPOTHESIS_PROFILE=deep looks further, differently every time.
settings.register_profile("suite", max_examples=40, derandomize=True, **_COMMON)
settings.register_profile("deep", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
