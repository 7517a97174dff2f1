"""The site, built once for all tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from documentation.blocks import ROOT


def build(out: Path) -> Path:
    """Build the site into a folder; a warning of any kind fails the build."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return out


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    return build(tmp_path_factory.mktemp("site"))
