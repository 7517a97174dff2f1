"""Puts measured audits into the documentation: stored results, tables and picture.

`dpcheckin audit --tightness` leaves cells.json in its --out folder, `dpcheckin audit --mutants`
mutants.json. Both are copied to docs/results, and the page gets exactly what the commands print of
them; nothing is measured here.

    python benchmarks/audit_results.py FOLDER [FOLDER ...]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dpcheckin.audit import tables

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "audit-tables.md", ROOT / "docs" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="--out of the two commands")
    folders = parser.parse_args().folders
    cells, mutants = (_found(folders, name) for name in ("cells.json", "mutants.json"))
    if cells is not None:
        known = [*tables.one_round_cells(), *tables.composed_cells()]
        read = json.loads(cells.read_text(encoding="utf-8"))
        done = {cell.key: read[cell.key] for cell in known if cell.key in read}
        _write("audit-tightness.json", json.dumps(done, indent=1))
        _put("tightness", tables.tightness_tables(done))
        drawn = [result for result in done.values() if result["cell"]["rounds"] == 1]
        tables.draw(drawn, ROOT / "docs" / "images" / "audit-tightness.png")
    if mutants is not None:
        _write("audit-mutants.json", mutants.read_text(encoding="utf-8"))
        _put("mutants", tables.mutants_markdown(list(tables.load_rows(mutants).values())))


def _found(folders: list[Path], name: str) -> Path | None:
    there = [folder / name for folder in folders if (folder / name).exists()]
    if len(there) > 1:
        raise SystemExit(f"{name} is in more than one folder: {', '.join(map(str, there))}")
    return there[0] if there else None


def _write(name: str, text: str) -> None:
    (RESULTS / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _put(name: str, text: str) -> None:
    """Between the page's marks of that name."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(f"<!-- {name} -->\n")
    _, after = rest.split(f"<!-- /{name} -->")
    whole = f"{before}<!-- {name} -->\n{text}<!-- /{name} -->{after}"
    PAGE.write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    main()
