"""What an installation weighs: which packages take the room, and how much of it is bytecode.

    python tools/weight.py                      # the core, installed into a throw-away environment
    python tools/weight.py --extra service      # with an extra
    python tools/weight.py --site FOLDER        # an installation that is there already

Sizes are those of the files, in MB of 10^6 bytes; pip, setuptools and what they bring are left out.
`pip install --no-compile` leaves the bytecode out, which Python then writes as it needs it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLERS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")
SHOWN = 10  # packages with a line of their own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extra", default="", help="extras, separated by commas")
    parser.add_argument("--site", type=Path, help="a site-packages folder that is there already")
    options = parser.parse_args()
    if options.site is not None:
        return show(weighed(options.site))
    with tempfile.TemporaryDirectory() as folder:
        show(weighed(installed(Path(folder), options.extra)))


def installed(folder: Path, extra: str) -> Path:
    """Install the package into a new environment; its site-packages."""
    venv.EnvBuilder(with_pip=True).create(folder)
    wanted = f"{ROOT}[{extra}]" if extra else str(ROOT)
    # the pinned torch: the newest one brings what every accelerator needs
    pins = ["-c", ROOT / "constraints.txt"]
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *pins, wanted], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    return site


def weighed(site: Path) -> dict[str, tuple[int, int]]:
    """For every package its bytes, and those of them that are bytecode."""
    found: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for file in site.rglob("*"):
        top = file.relative_to(site).parts[0]
        # the libraries that a wheel brings count as its own
        name = top.partition("-")[0].removesuffix(".libs").removesuffix(".py")
        if top.partition("-")[0] in INSTALLERS or top in INSTALLERS or not file.is_file():
            continue
        size = file.lstat().st_size
        every, bytecode = found[name]
        found[name] = every + size, bytecode + (size if file.suffix == ".pyc" else 0)
    return dict(found)


def show(sizes: Mapping[str, tuple[int, int]]) -> None:
    """Print the largest, the rest and the sum."""
    if not sizes:
        sys.exit("weight: nothing is installed there")
    ordered = sorted(sizes.items(), key=lambda item: -item[1][0])
    rest = [size for _, size in ordered[SHOWN:]]
    rows = [*ordered[:SHOWN], ("others", (sum(s for s, _ in rest), sum(b for _, b in rest)))]
    rows.append(("all", tuple(map(sum, zip(*sizes.values(), strict=True)))))  # type: ignore[arg-type]
    print(f"{'MB':18}{'all':>8}{'without bytecode':>20}")
    for name, (every, bytecode) in rows:
        print(f"{name:18}{every / 1e6:8.1f}{(every - bytecode) / 1e6:20.1f}")


if __name__ == "__main__":
    main()
