"""Pictures of pages as a browser shows them: docs/images/planner.png, and others to look at.

    python tools/pictures.py                    # renews docs/images/planner.png
    python tools/pictures.py --all build/pictures [--runs DIR] [--reports DIR] [--site DIR]

Starts the planner on a free port of this machine, waits until every line is drawn, and photographs
it. With --all every page is photographed, wide and narrow, light and dark: the planner, its page of
published bounds, the runs of a folder, every report.html below a folder and every page of a built
site. Needs the extra `dev` and the system's Chromium (CHROMIUM=/path chooses another).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
# P3's MNIST run, as in the README's picture and table
QUERY = "?population=60000&rate=1/30&local_epsilon=2&rounds=6000&delta=1e-5"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 300_000  # milliseconds
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "planner.png")
    parser.add_argument("--all", type=Path, help="folder for pictures of every page")
    parser.add_argument("--runs", type=Path, help="folder of training runs")
    parser.add_argument("--reports", type=Path, help="folder with report.html files below it")
    parser.add_argument("--site", type=Path, help="the built documentation")
    options = parser.parse_args()
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        sys.exit("pictures: no Chromium found (Debian: apt-get install chromium)")
    with sync_playwright() as playwright, planner(options.runs) as address:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        if options.all:
            photograph_all(browser, address, options)
        else:
            page = browser.new_page(viewport={"width": 1280, "height": 1372}, device_scale_factor=1.5)
            page.goto(address + QUERY)
            settled(page)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=options.out)
            print(f"written to {options.out}")
        browser.close()


@contextmanager
def planner(runs: Path | None) -> Iterator[str]:
    """The address of a planner that runs until the end of the block."""
    command = [sys.executable, "-c", "from dpcheckin.cli import main; main()", "ui", "--no-browser"]
    server = subprocess.Popen(
        command if runs is None else [*command, "--runs", str(runs)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None, "the server did not say where it is"
        yield address[0]
    finally:
        server.terminate()
        server.wait(timeout=30)


def settled(page: Page) -> None:
    """Wait until the planner has computed everything."""
    for condition in ("#status[data-state=certified]", "#tradeoff-panel[data-state=done]"):
        page.wait_for_selector(condition, state="attached", timeout=PATIENCE)


def photograph_all(browser: Browser, address: str, options: argparse.Namespace) -> None:
    """Every page, wide and narrow, light and dark, into the folder."""
    options.all.mkdir(parents=True, exist_ok=True)
    pages = {"planner": address + QUERY, "bounds": address + "bounds"}
    if options.runs:
        pages["runs"] = address + "?view=runs"
    if options.reports:
        for file in sorted(options.reports.rglob("report.html")):
            pages[f"report-{file.parent.name}"] = file.resolve().as_uri()
    if options.site:
        for file in sorted(options.site.rglob("*.html")):
            name = file.relative_to(options.site).with_suffix("").as_posix().replace("/", "-")
            pages[f"site-{name}"] = file.resolve().as_uri()
    for look, viewport, scheme in (
        ("wide", WIDE, "light"), ("wide-dark", WIDE, "dark"),
        ("narrow", NARROW, "light"), ("narrow-dark", NARROW, "dark"),
    ):  # fmt: skip
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        for name, url in pages.items():
            page = context.new_page()
            page.goto(url)
            if name == "planner":
                settled(page)
            elif name == "runs":
                page.wait_for_selector("#run-facts div", timeout=PATIENCE)
            page.screenshot(path=options.all / f"{name}-{look}.png", full_page=True)
            page.close()
        context.close()
    print(f"{4 * len(pages)} pictures in {options.all}")


if __name__ == "__main__":
    main()
