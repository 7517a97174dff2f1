"""The papers' training figures that were played in full: pictures, figures and a page.

    python benchmarks/paper_figures.py FOLDER --fill            brings runs kept before into FOLDER
    dpcheckin reproduce p1-figure4 p3-figure6 --out FOLDER      plays the rest and draws (hours)
    python benchmarks/paper_figures.py FOLDER                   keeps what is finished there
    python benchmarks/paper_figures.py --page                   writes the table into the page anew

What is kept is every finished run of a figure (report and log, in `docs/results/paper-runs`: all
figures together take a day of a small machine, and are played by and by), of finished figures
`docs/results/paper-figures.json` (a summary each, with its command) and a picture in
`docs/images/figures`, and a table and the pictures in `docs/paper-figures.md`. A quick look is
refused: its summary says that it is one. Figures that are not finished are named.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from pathlib import Path
from typing import Any

from dpcheckin.numerals import Kind, rounded_down, rounded_up
from dpcheckin.papers.figures import TRAINING
from dpcheckin.papers.training import LOG, REPORT, is_finished, run_folder
from dpcheckin.papers.training_figure import QUICK

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS / "results" / "paper-figures.json"
RUNS = DOCS / "results" / "paper-runs"
PICTURES = DOCS / "images" / "figures"
PAGE = DOCS / "paper-figures.md"
KEPT = ("accuracies", "delta", "epsilon", "papers_epsilon", "population", "randomizer", "rounds")
HEAD = (
    "| figure, curve | test accuracy | ε, certified | ε by the paper's accountants | printed |",
    "|---|---|---|---|---|",
)


def safely(bound: str, epsilon: float) -> str:
    """A figure of a bound, a lower one rounded down."""
    return (rounded_down if bound.endswith(f"({Kind.LOWER_BOUND.value})") else rounded_up)(epsilon)


def summary_of(name: str, folder: Path) -> dict[str, Any] | None:
    """What is kept of a figure, None unless it was played in full."""
    path = folder / name / "summary.json"
    if not path.is_file():
        return None
    read = json.loads(path.read_text())
    if QUICK in read["caption"]:
        raise SystemExit(f"{path} is a quick look")
    runs = {
        label: facts if "left_out" in facts else {key: facts[key] for key in KEPT}
        for label, facts in read["runs"].items()
    }
    seeds = TRAINING[name].seeds
    if any(len(facts.get("accuracies", [None] * seeds)) != seeds for facts in runs.values()):
        raise SystemExit(f"{path} has fewer seeds than the figure")
    return {"title": read["title"], "caption": read["caption"], "command": f"dpcheckin reproduce {name}", "runs": runs}


def copy_runs(source: Path, target: Path) -> None:
    """Copy report and log of every finished run of a figure."""
    runs = (run for figure in TRAINING.values() for run in figure.all_runs())
    for run in (run for run in runs if is_finished(run, source)):
        there, here = (run_folder(run.options, run.seed, where) for where in (source, target))
        here.mkdir(parents=True, exist_ok=True)
        for name in (REPORT, LOG):
            shutil.copyfile(there / name, here / name)


def played() -> str:
    """How many runs of figures that are not finished are there."""
    found = {name: [is_finished(run, RUNS) for run in figure.all_runs()] for name, figure in TRAINING.items()}
    told = [f"{name} ({sum(d)} of {len(d)} runs)" for name, d in found.items() if not all(d)]
    return ", ".join(told)


def accuracy(scores: list[float]) -> str:
    """The mean in per cent, rounded down, with the spread of several seeds."""
    low, mean, high = (
        math.floor(1e4 * value + 1e-6) / 100 for value in (min(scores), sum(scores) / len(scores), max(scores))
    )
    spread = "one seed" if len(scores) == 1 else f"{len(scores)} seeds, {low:.2f}–{high:.2f}"
    return f"{mean:.2f}% ({spread})"


def lines(name: str, kept: dict[str, Any]) -> list[str]:
    """A figure's curves as lines of the table."""
    points = TRAINING[name].published
    printed = "; ".join(f"{y:g}%{'' if x is None else f' at {x:g}'}, {by}" for x, y, by in points)
    found = []
    for label, facts in kept["runs"].items():
        where = f"| [{kept['title'].partition(':')[0]}](#{name}), {label} "
        if "left_out" in facts:
            found.append(f"{where}| not played: {facts['left_out']} | – | – | {printed or '–'} |")
            continue
        theirs = "; ".join(f"{n}: {safely(n, v)}" for n, v in facts["papers_epsilon"].items())
        found.append(
            f"{where}| {accuracy(facts['accuracies'])} | {rounded_up(facts['epsilon'])} "
            f"| {theirs or '–'} | {printed or '–'} |"
        )
    return found


def sentence(text: str) -> str:
    """With a capital, unless it begins with a symbol, and a full stop."""
    return f"{text[0].upper() if text[0].isascii() else text[0]}{text[1:]}."


def section(name: str, kept: dict[str, Any]) -> list[str]:
    """A figure with its picture and how it differs from what is printed."""
    return [
        f"### {kept['title'].partition(':')[0]} {{ #{name} }}",
        "",
        f"{sentence(kept['title'].partition(': ')[2])}",
        "",
        f"![{kept['title']}](images/figures/{name}.png)",
        "",
        *(f"- {sentence(note)}" for note in kept["caption"]),
        "",
    ]


def write_page(results: dict[str, Any]) -> None:
    """Put table, pictures and what is missing between the page's marks."""
    body = [*HEAD, *(line for name, kept in results.items() for line in lines(name, kept)), ""]
    if missing := played():
        body += [f"Not played in full yet: {missing}.", ""]
    body += [line for name, kept in results.items() for line in section(name, kept)]
    before, _, rest = PAGE.read_text().partition("<!-- figures -->\n")
    _, _, after = rest.partition("<!-- end of figures -->\n")
    block = "\n".join(["<!-- figures -->", *body, "<!-- end of figures -->", ""])
    PAGE.write_text(before + block + after)


def main() -> None:
    """Keep what is finished, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="of `dpcheckin reproduce --out`")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--fill", action="store_true", help="bring what was kept into the folder")
    asked = parser.parse_args()
    if asked.fill and asked.folder is not None:
        copy_runs(RUNS, asked.folder)
        return
    if not asked.page and asked.folder is None:
        parser.error("a folder or --page is needed")
    stored = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    if asked.folder is not None:
        copy_runs(asked.folder, RUNS)
        for name in TRAINING:
            found = summary_of(name, asked.folder)
            if found is not None:
                stored[name] = found
                PICTURES.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(asked.folder / name / f"{name}.png", PICTURES / f"{name}.png")
        stored = {name: stored[name] for name in TRAINING if name in stored}
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    write_page(stored)


if __name__ == "__main__":
    main()
