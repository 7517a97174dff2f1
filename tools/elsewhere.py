"""The numeric tests as other processors would run them.

OpenBLAS chooses its kernels and NumPy its loops by the processor. Both can be told to behave as on
another one, within what this one can do; what cannot be imitated here is named, not passed over.

    python tools/elsewhere.py            every imitation, one after the other
    python tools/elsewhere.py --quick    one of them, and the tests where rounding matters most
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# the processor flag that each kernel of OpenBLAS needs
KERNELS = {"Prescott": "pni", "Nehalem": "sse4_2", "Haswell": "avx2", "Zen": "avx2", "SkylakeX": "avx512f"}
NUMERIC = ("tests/accounting", "tests/randomizers", "tests/protocols")
QUICK = (
    "tests/accounting/test_pairs.py",
    "tests/accounting/test_shuffled.py",
    "tests/accounting/test_lower_bounds.py",
    "tests/accounting/engine",
    "tests/accounting/renyi",
)


def flags() -> set[str]:
    """What this processor can do, as the kernel tells it."""
    told = Path("/proc/cpuinfo")
    if not told.exists():
        return set()
    lines = told.read_text(encoding="utf-8").splitlines()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def dispatched() -> list[str]:
    """The groups of instructions that NumPy uses here and can do without."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


def imitations() -> tuple[dict[str, dict[str, str]], list[str]]:
    """Settings of the environment by name, and those that cannot be tried here."""
    here, missing = {}, []
    able = flags()
    for kernel, needed in KERNELS.items():
        if needed in able:
            here[f"OpenBLAS as on {kernel}"] = {"OPENBLAS_CORETYPE": kernel}
        else:
            missing.append(f"OpenBLAS as on {kernel} (no {needed} here)")
    groups = dispatched()
    if groups:
        plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(groups)}
        here[f"NumPy without {', '.join(groups)}"] = plain
    else:
        missing.append("NumPy without its fast loops (it uses none here)")
    return here, missing


def main() -> int:
    quick = "--quick" in sys.argv[1:]
    tried, missing = imitations()
    if quick:
        tried = dict(list(tried.items())[1:2])  # not the oldest: what a decade of machines has
    failed = []
    for name, setting in tried.items():
        print(f"== {name}", flush=True)
        tests = QUICK if quick else NUMERIC
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *tests]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **setting}, check=False)
        failed += [name] if done.returncode else []
    for name in missing:
        print(f"not run: {name}")
    print(f"{len(tried) - len(failed)} of {len(tried)} passed" + "".join(f"; failed: {x}" for x in failed))
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
