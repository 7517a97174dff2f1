"""Reproduction: resumable, complete, and honest about what contradicts the papers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli_in_process import run_cli
from dpcheckin.cli.compare import compare
from dpcheckin.cli.reproduce import reproduce as reproduce_command
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.figures import panels
from dpcheckin.report.reproduce import CellCache, names, reproduce, write_png

app = typer.Typer()
app.command("compare")(compare)
app.command("reproduce")(reproduce_command)
runner = CliRunner()


def test_every_panel_is_well_formed() -> None:
    """Unique row labels and columns, at least one of ours in each."""
    assert {"p1-table2", "p4-table1", "p1-figure3", "p1-figure5", "p2-figure2-n1000"} <= set(names())
    assert {f"p3-figure{f}-{x}" for f in (4, 5) for x in "abc"} <= set(names())
    for panel in panels().values():
        assert len({r.label for r in panel.rows}) == len(panel.rows)
        assert len({c.label for c in panel.columns}) == len(panel.columns)
        assert any(not c.printed for c in panel.columns)


def test_table_2_flags_the_three_impossible_entries(tmp_path: Path) -> None:
    """CSV, PNG and report are written; the contradictions are spelled out."""
    (result,) = reproduce(["p1-table2"], tmp_path)
    remarks = result.panel.remarks(result.cells)
    assert sum("Impossible" in x for x in remarks) == 3
    assert result.cells[("ε0 = 2, γ = 0.01", "empty-seat guarantee")] == pytest.approx(0.0695, rel=1e-3)
    with (tmp_path / "p1-table2.csv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert len(rows) == 1 + 4 * len(result.panel.columns)
    assert {row[1] for row in rows[1:]} == {"guarantee", "lower bound", "refuted claim"}
    assert ["baseline", "refuted claim", "printed in the paper"] in [row[:3] for row in rows]
    assert (tmp_path / "p1-table2.png").read_bytes()[:4] == b"\x89PNG"
    assert "Impossible" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_second_run_computes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells come from the cache; a cell lost from it is computed again."""
    reproduce(["p1-figure5"], tmp_path)
    written: list[int] = []
    monkeypatch.setattr(CellCache, "_write", lambda self: written.append(1))
    reproduce(["p1-figure5"], tmp_path)
    assert written == []
    cache = tmp_path / "cache.json"
    content = json.loads(cache.read_text(encoding="utf-8"))
    content.popitem()
    cache.write_text(json.dumps(content), encoding="utf-8")
    reproduce(["p1-figure5"], tmp_path)
    assert written == [1]


def test_p2_figure_2_is_the_printed_formulas(tmp_path: Path) -> None:
    """Theorem 5.1 at n = 1,000, eps0 = 0.5, by hand: a = e^0.75 (e^0.5 - 1)/sqrt(n)."""
    (result,) = reproduce(["p2-figure2-n1000"], tmp_path)
    assert result.cells[("0.50", "P2 Theorem 5.1 (solid)")] == pytest.approx(0.22923, rel=1e-4)
    ours = result.cells[("0.50", "our guarantee")]
    clones = result.cells[("0.50", "exact clones")]
    assert ours is not None and clones is not None and ours <= clones


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    """One line that lists what there is."""
    with pytest.raises(InvalidParameter, match="p1-table2"):
        reproduce(["p9-table7"], tmp_path)
    said = run_cli("reproduce", "p9-table7", "--out", str(tmp_path), code=2)
    assert said.count("\n") == 1


def test_compare_command() -> None:
    """JSON has kinds; the table runs; bad input is one line and exit code 2."""
    run = ["compare", "--population", "10000", "--rate", "0.01", "--local-epsilon", "2"]
    run += ["--rounds", "100", "--delta", "1e-4"]
    result = runner.invoke(app, [*run, "--json"])
    assert result.exit_code == 0
    lines = json.loads(result.stdout)
    kinds = {line["kind"] for line in lines}
    assert kinds >= {"guarantee", "lower bound", "refuted claim"}
    figures = [line["epsilon"] for line in lines if line["epsilon"] is not None]
    assert figures == sorted(figures)
    assert runner.invoke(app, run).exit_code == 0
    bad = run_cli("compare", "--population", "0", "--local-epsilon", "1", code=2)
    assert bad.count("\n") == 1 and "population" in bad


def test_compare_draws(tmp_path: Path) -> None:
    """Along one parameter: CSV, PNG and Markdown."""
    run = ["compare", "--population", "1000", "--protocol", "distributed-check-in", "--rate", "0.1"]
    run += ["--noise-multiplier", "1.0", "--over", "rounds", "--values", "1,10", "--out"]
    result = runner.invoke(app, [*run, str(tmp_path)])
    assert result.exit_code == 0
    assert (tmp_path / "comparison.png").exists() and (tmp_path / "comparison.csv").exists()
    assert runner.invoke(app, [*run, str(tmp_path / "one" / "mine.png")]).exit_code == 0
    assert (tmp_path / "one" / "mine.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "one" / "mine.csv").exists()


def test_figures_come_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers need no pictures: the report and the CSV are written, the lack is named."""
    monkeypatch.setattr("dpcheckin.cli.reproduce.find_spec", lambda name: None)
    shown = runner.invoke(app, ["reproduce", "p1-figure5", "--out", str(tmp_path)])
    assert shown.exit_code == 0 and "dpcheckin[plot]" in shown.output
    assert (tmp_path / "p1-figure5.csv").exists() and not list(tmp_path.glob("*.png"))
    assert "![" not in (tmp_path / "report.md").read_text()


def test_values_without_an_axis_are_refused() -> None:
    run = ["--population", "100", "--rate", "0.1", "--local-epsilon", "1"]
    assert "--values" in run_cli("compare", *run, "--values", "1,10", code=2)
    assert "--out" in run_cli("compare", *run, "--out", "somewhere", code=2)


def test_colours_and_lines_that_labels_name_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word in brackets of a label that is a colour or a line, in every picture; ours never takes a named one."""
    axes = pytest.importorskip("matplotlib.axes")
    drawn: dict[str, dict[str, Any]] = {}
    plot = axes.Axes.plot
    monkeypatch.setattr(axes.Axes, "plot", lambda self, *a, **k: drawn.update({k["label"]: k}) or plot(self, *a, **k))
    named = 0
    for panel in (p for p in panels().values() if p.is_figure):
        drawn.clear()
        write_png(panel, {(r.label, c.label): 1.0 for r in panel.rows for c in panel.columns}, tmp_path / "x.png")
        taken = [k["color"] for label, k in drawn.items() if re.search(r"\((red|blue|black|magenta)\)", label)]
        for column in panel.columns:
            (given,) = (k for label, k in drawn.items() if label.startswith(f"{column.label} ("))
            for word in re.findall(r"\((red|blue|black|magenta|solid|dotted)\)", column.label):
                if word in {"solid", "dotted"}:
                    assert given["linestyle"] == {"solid": "-", "dotted": ":"}[word], column.label
                else:
                    assert given["color"] == word, f"{panel.name}: {column.label} is {given['color']}"
                named += 1
            assert not (column.ours and given["color"] in taken), panel.name
    assert named >= 30
