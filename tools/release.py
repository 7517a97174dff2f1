"""Prepare a release; publishing it is one command by a person, which is printed at the end.

    python tools/release.py              build wheel and sdist twice, compare, list and check them, into dist/
    python tools/release.py 1.0.0rc1     before that, give the version to package, changelog and citation

Nothing is published, tagged or committed from here.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
NEVER = re.compile(r"(^|/)(\.git|\.venv|tests|demo-out|node_modules|__pycache__)/|\.(key|pem|db|sqlite)$")
STAMP = "315532800"  # 1980-01-01, the first date that a zip file can hold


def cut(version: str) -> None:
    """Give the version to the package, to the changelog with today's date, and to the citation."""
    try:
        if str(Version(version)) != version:
            raise InvalidVersion(version)
    except InvalidVersion:
        raise SystemExit(f"release: {version!r} is not a version such as 1.0.0 or 1.0.0rc1") from None
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"## [{version}]" in changelog:
        raise SystemExit(f"release: CHANGELOG.md has a section {version} already")
    if re.search(r"^## \[Unreleased\]\s*(?=^## |\Z)", changelog, flags=re.MULTILINE):
        raise SystemExit("release: nothing stands under [Unreleased] in CHANGELOG.md")
    today = datetime.date.today().isoformat()
    for name, old, new in (
        ("CHANGELOG.md", r"^## \[Unreleased\]$", f"## [Unreleased]\n\n## [{version}] - {today}"),
        ("src/dpcheckin/__init__.py", r'^__version__ = ".*"$', f'__version__ = "{version}"'),
        ("CITATION.cff", r"^version: .*$", f"version: {version}"),
    ):
        text, places = re.subn(old, new, (ROOT / name).read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
        if places != 1:
            raise SystemExit(f"release: {name} has no line for the version")
        (ROOT / name).write_text(text, encoding="utf-8")


def tracked(folder: Path) -> Path:
    """A copy of what git keeps, as it stands in the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place)
    return folder


def built() -> dict[str, bytes]:
    """Wheel and sdist by name, from a copy in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        source, out = tracked(Path(name) / "source"), Path(name) / "out"
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
        subprocess.run(command, cwd=source, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": STAMP})
        return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def contents(file: Path) -> list[str]:
    """The names in a wheel or sdist."""
    if file.suffix == ".whl":
        return sorted(zipfile.ZipFile(file).namelist())
    with tarfile.open(file) as archive:
        return sorted(archive.getnames())


def main() -> None:
    """Cut if a version is given, then build and check."""
    if sys.argv[1:]:
        cut(sys.argv[1])
    first, second = built(), built()
    if first != second:
        raise SystemExit("release: two builds differ")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for name, data in first.items():
        (DIST / name).write_bytes(data)
        inside = contents(DIST / name)
        if wrong := [part for part in inside if NEVER.search(part) and name.endswith(".whl")]:
            raise SystemExit(f"release: {name} holds {wrong[0]}")
        (DIST / f"{name}.txt").write_text("\n".join(inside) + "\n", encoding="utf-8")
        print(f"{hashlib.sha256(data).hexdigest()}  dist/{name}  {len(data):,} bytes, {len(inside)} files")
    files = [str(DIST / name) for name in first]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src/dpcheckin/__init__.py").read_text("utf-8"))
    assert version is not None
    print(
        "Built twice, the same both times; the contents stand in dist/*.txt. What is left for a person:\n"
        f"  git commit -am 'Release {version[1]}' && git tag -s v{version[1]} && git push --follow-tags\n"
        f"  python -m twine upload {' '.join('dist/' + name for name in first)}"
    )


if __name__ == "__main__":
    main()
