"""Figures of the papers' sentences: of what kind they are, and what is recomputed of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dpcheckin.cli.reproduce import reproduce as reproduce_command
from dpcheckin.numerals import Kind
from dpcheckin.papers.figures import panels

app = typer.Typer()
app.command("reproduce")(reproduce_command)


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[str, float]]:
    """(row, column) -> kind and figure, as the command prints them."""
    folder: Path = tmp_path_factory.mktemp("claims")
    run = ["claims", "--json", "--out", str(folder)]
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output
    return {
        (row["claim"], cell["column"]): (cell["kind"], cell["epsilon"])
        for panel in json.loads(result.stdout)
        for row in panel["rows"]
        for cell in row["cells"]
    }


def test_p3_s_figure_is_a_guarantee(claims: dict[tuple[str, str], tuple[str, float]]) -> None:
    """5.8 is what Theorem 1 gives: valid and loose, not refuted."""
    row = "P3: MNIST, 89.7%"
    assert claims[row, "claim"] == ("guarantee", 5.8)
    assert claims[row, "P3 Theorem 1, fixed cohort"][1] == pytest.approx(5.7946, abs=1e-4)
    assert claims[row, "empty-seat guarantee"][1] < 5.8


def test_p0_s_figure_is_not_called_impossible(claims: dict[tuple[str, str], tuple[str, float]]) -> None:
    """No delta is stated and the randomizer is another: a sentence, and no point at delta = 1/n."""
    row = "P0: MNIST, 90%"
    assert (row, "claim") not in claims
    assert claims[row, "P0 Equation 18"] == ("refuted claim", pytest.approx(11.82, abs=0.005))
    assert claims[row, "P0 Equation 8, converted"][1] == pytest.approx(0.98, abs=0.005)


def test_the_comparator_of_p3(claims: dict[tuple[str, str], tuple[str, float]]) -> None:
    """18.3 lies between what its closed form and what its exact pair give."""
    row = "P3: MNIST, 89.7%, comparator"
    exact = claims[row, "exact clones, Kairouz et al."][1]
    loose = claims[row, "clones formula, condition ignored"][1]
    assert exact == pytest.approx(8.16, abs=0.01) and loose == pytest.approx(28.7, abs=0.05)
    assert exact < claims[row, "claim"][1] == 18.3 < loose
    half = claims["P3: MNIST, 81.15%", "P3 Theorem 1, fixed cohort"][1]
    assert half == pytest.approx(2.988, abs=1e-3)


def test_no_panel_calls_a_printed_valid_figure_refuted() -> None:
    """Only P1 Table 2's columns hold printed figures below a lower bound."""
    refuted = {
        (panel.name, column.label)
        for panel in panels().values()
        for column in panel.columns
        if column.printed and column.kind is Kind.REFUTED
    }
    assert refuted == {("p1-table2", x) for x in ("baseline", "approach 1", "approach 2")}


def test_red_curves_are_not_called_lower_bounds() -> None:
    for name, panel in panels().items():
        for column in panel.columns:
            if "(red)" in column.label and "converted" in column.label:
                assert column.kind is Kind.CONJECTURE, name
