"""The notebook of the documentation shows what its cells return, and is a page of the site."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from documentation.blocks import ROOT

PATH = ROOT / "docs" / "notebook.ipynb"
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.ipynb"))
NEEDS = {"train": "torch", "flower": "flwr", "certificate": "flint"}
TOOL = runpy.run_path(str(ROOT / "tools" / "notebook.py"))
matplotlib.use("Agg")


def shown(notebook: dict[str, Any]) -> list[tuple[int, str, object]]:
    """What each cell shows; of pictures only that there is one (fonts differ)."""
    found: list[tuple[int, str, object]] = []
    for number, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                found.append((number, "text", "".join(output["text"])))
            for kind, content in output.get("data", {}).items():
                picture = kind == "image/png"
                text = "".join(content)
                if kind != "text/plain":  # every digit of every field
                    found.append((number, kind, len(text) > 1_000 if picture else text))
    return found


@pytest.mark.parametrize("path", [PATH, *GALLERY], ids=lambda path: path.stem)
def test_a_fresh_run_shows_what_the_file_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    below = ROOT / "docs" / "gallery"  # whoever starts Jupyter does so where the notebook lies
    monkeypatch.chdir(below if path.parent == below else tmp_path)
    kept = TOOL["read"](path)
    assert any(cell.get("outputs") for cell in kept["cells"])
    assert shown(TOOL["run"](kept)) == shown(kept)


def test_the_file_shows_tables_and_pictures() -> None:
    kept = TOOL["read"](PATH)
    assert sum(kind == "image/png" for _, kind, _ in shown(kept)) >= 3
    assert sum(kind == "text/html" for _, kind, _ in shown(kept)) >= 3


def test_the_page_holds_every_cell_and_output() -> None:
    kept = TOOL["read"](PATH)
    page = TOOL["page"](kept, PATH.name)
    for cell in kept["cells"]:
        assert "".join(cell["source"]) in page
    assert page.count("data:image/png;base64,") == sum(kind == "image/png" for _, kind, _ in shown(kept))
    assert "(notebook.ipynb)" in page


def test_cells_print_return_and_fail_as_they_would_elsewhere() -> None:
    def notebook(*sources: str) -> dict[str, Any]:
        cells = [{"cell_type": "code", "source": [text], "outputs": []} for text in sources]
        return {"cells": [{"cell_type": "markdown", "source": ["words"]}, *cells]}

    done = TOOL["run"](notebook("x = 2\nprint(x)", "x + 1", "x = 3;"))
    texts = [output for cell in done["cells"][1:] for output in cell["outputs"]]
    assert texts[0]["text"] == ["2\n"]
    assert texts[1]["data"] == {"text/plain": ["3"]}
    assert len(texts) == 2
    json.dumps(done)
    with pytest.raises(ZeroDivisionError):
        TOOL["run"](notebook("1 / 0"))
