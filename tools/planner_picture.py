"""Make docs/images/planner.png: the planner with a published MNIST run, as a browser shows it.

    python tools/planner_picture.py [--out docs/images/planner.png] [--dark]

Starts the page on a free port of this machine, waits until every line is drawn, and photographs
the window. Needs the extra `dev` and the system's Chromium (CHROMIUM=/path chooses another).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
# P3's MNIST run, as in the README's picture and table
QUERY = "?population=60000&rate=1/30&local_epsilon=2&rounds=6000&delta=1e-5"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 300_000  # milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "planner.png")
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if browser is None:
        sys.exit("planner_picture: no Chromium found (Debian: apt-get install chromium)")
    program = "from dpcheckin.cli import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", program, "ui", "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None, "the server did not say where it is"
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=FLAGS)
            page = chromium.new_page(
                viewport={"width": 1280, "height": 1372},
                device_scale_factor=1.5,
                color_scheme="dark" if options.dark else "light",
            )
            page.goto(address[0] + QUERY)
            for condition in ("#status[data-state=certified]", "#progress[data-state=done]"):
                page.wait_for_selector(condition, state="attached", timeout=PATIENCE)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=options.out)
            chromium.close()
    finally:
        server.terminate()
        server.wait(timeout=30)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
