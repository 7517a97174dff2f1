"""The catalogue: every entry says what it is, and refuted ones stay refuted."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dpcheckin.accounting import gaussian
from dpcheckin.errors import InvalidParameter, NotAGuarantee
from dpcheckin.numerals import Kind
from dpcheckin.papers import catalogue as papers_catalogue
from dpcheckin.papers import figures as papers_figures
from dpcheckin.papers.catalogue import catalogue, evaluate, published_bounds
from dpcheckin.papers.entry import PAPERS, BoundValue, Setting
from dpcheckin.papers.figures import panels
from dpcheckin.papers.tables import tables
from dpcheckin.report.compare import compare

PACKAGE = Path(papers_figures.__file__).parent


def test_every_entry_is_complete() -> None:
    """Paper with arXiv version (or venue), theorem, statement, kind; an erratum if refuted."""
    entries = catalogue()
    assert len(entries) >= 30
    for bound in entries:
        assert bound.statement and bound.theorem and bound.protocols
        assert "arXiv" in bound.citation
        assert bound.kind in Kind
        if bound.kind is Kind.REFUTED:
            assert bound.erratum
    assert {b.paper for b in entries} >= {"P0", "P1", "P2", "P3", "P4"}
    assert len({(b.name, b.theorem, b.protocols) for b in entries}) == len(entries)
    assert all("v" in text.rsplit("arXiv", 1)[1] for text in PAPERS.values())


def test_only_guarantees_become_guarantees() -> None:
    """Whatever its number, an entry of another kind is refused, in the type's one door."""
    for bound in catalogue():
        value = BoundValue(bound, 0.1, None)
        if bound.kind is Kind.GUARANTEE:
            assert value.guaranteed_epsilon() == 0.1
        else:
            with pytest.raises(NotAGuarantee, match=bound.kind.value):
                value.guaranteed_epsilon()


def test_p1_table_2_is_recomputed_and_refuted() -> None:
    """First baseline entry within 0.092..0.096; approaches within a fifth of the print."""
    values = {v.name: v for v in published_bounds(10_000, 1e-2, 2.0, 100, 1e-4)}
    assert 0.092 <= values["P1 baseline"].epsilon <= 0.096
    assert values["P1 approach 1"].epsilon == pytest.approx(0.17, rel=0.1)
    values = {v.name: v for v in published_bounds(10_000, 1e-2, 8.0, 100, 1e-4)}
    assert values["P1 approach 1"].epsilon == pytest.approx(8.57, rel=0.01)
    assert values["P1 approach 2"].epsilon == pytest.approx(8.18, rel=0.01)
    assert all(values[f"P1 {x}"].kind is Kind.REFUTED for x in ("baseline", "approach 1"))


def test_p3_mnist_run() -> None:
    """Theorem 1 gives the reported 5.8 (5.79); the exact sum over k of P0's run gives 11.3."""
    run = Setting("subsampled-shuffle", 60_000, 6_000, 1e-5, cohort=2_000, local_epsilon=2.0)
    values = {v.theorem: v.epsilon for v in evaluate(run)}
    assert values["Thm 1"] == pytest.approx(5.79, abs=0.01)
    assert values["Thm 2, converted to epsilon"] < values["Thm 1"]


def test_reasons_are_given_where_a_bound_does_not_apply() -> None:
    """Never a number in the place of a reason."""
    for value in evaluate(Setting("shuffle", 50, 3, 1e-6, local_epsilon=2.0)):
        assert (value.epsilon is None) != (value.reason is None)
    with pytest.raises(InvalidParameter, match="protocol"):
        compare(Setting("gossip", 50, 3, 1e-6, local_epsilon=2.0))


_SMALL_RUNS = {
    "shuffle": {"local_epsilon": 0.4},
    "subsampled-shuffle": {"local_epsilon": 0.4, "cohort": 400},
    "shuffled-check-in": {"local_epsilon": 0.4, "rate": 0.2},
    "distributed-check-in": {"noise_multiplier": 1.0, "rate": 0.2},
    "distributed-check-in-removal": {"noise_multiplier": 1.0, "rate": 0.2},
    "random-check-in-fixed": {"local_epsilon": 0.4, "slots": 1000, "check_in_probability": 0.5},
    "random-check-in-averaged": {"local_epsilon": 0.4, "slots": 1000},
    "random-check-in-sliding": {"local_epsilon": 0.4, "slots": 1000},
}


@pytest.mark.parametrize("protocol", _SMALL_RUNS)
def test_every_protocol_is_evaluated(protocol: str) -> None:
    """A figure or a reason for each entry; composed proofs are never above their closed form."""
    setting = Setting(protocol, 2_000, 1, 1e-6, **_SMALL_RUNS[protocol])
    values = evaluate(setting)
    assert any(v.epsilon is not None for v in values)
    for v in values:
        assert (v.epsilon is None) != (v.reason is None)
        assert v.epsilon is None or (math.isfinite(v.epsilon) and v.epsilon >= 0.0)
    figures = {v.name: v.epsilon for v in values}
    for name, closed in figures.items():
        composed = figures.get(f"{name}, composed")
        if composed is not None and closed is not None:
            assert composed <= closed


@pytest.mark.parametrize("protocol", ["shuffle", "subsampled-shuffle"])
def test_gaussian_reports_are_evaluated(protocol: str) -> None:
    """P4's curves are refuted or unproved, and above the exact pair they convert."""
    more = {"cohort": 200} if protocol == "subsampled-shuffle" else {}
    values = evaluate(Setting(protocol, 2_000, 10, 1e-5, noise_multiplier=4.0, **more))
    kinds = (Kind.REFUTED, Kind.CONJECTURE)
    claims = [v for v in values if v.kind in kinds and v.epsilon is not None]
    assert claims
    lower = [v.epsilon for v in values if v.kind is Kind.LOWER_BOUND and v.epsilon is not None]
    assert all(v > 0.0 for v in lower)


def test_local_deltas_need_to_be_tiny() -> None:
    """P2's second halves: a figure above the pure one, or the reason why there is none."""
    name = "(eps0, delta0) random check-ins"
    for protocol in ("shuffle", "random-check-in-fixed", "random-check-in-averaged"):
        run = {"slots": 10**5} if protocol != "shuffle" else {}
        values = {
            x: next(
                v
                for v in evaluate(Setting(protocol, 10**5, 1, 1e-6, local_epsilon=0.05, local_delta=x, **run))
                if v.name == name
            )
            for x in (1e-18, 1e-7)
        }
        assert values[1e-18].epsilon is not None and values[1e-18].epsilon < 0.4
        assert values[1e-7].epsilon is None and "delta" in (values[1e-7].reason or "")


def test_p1_figure_3_has_the_noise_that_its_note_says() -> None:
    """A report is (2, δ²)-DP at distance 1, half of that of gaussian()'s values."""
    run = panels()["p1-figure3"].rows[0].parameters
    assert gaussian(2.0 * run["noise_multiplier"]).epsilon_within(run["delta"] ** 2) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("name", ["catalogue.toml", "figures.toml"])
def test_what_the_papers_print_is_told_in_fields_that_are_known(name: str) -> None:
    """A field that nobody reads, or a text that nobody uses, would be a slip of the pen."""
    known = {
        "catalogue.toml": {"papers", "texts", "bound", "steps"},
        "figures.toml": {"texts", "columns", "panel", "runs", "training"},
    }[name]
    said = ""
    for folder, table in tables(name).items():
        assert table.keys() <= known, folder
        said += (PACKAGE / folder / name).read_text(encoding="utf-8")
    texts = {text for table in tables(name).values() for text in table.get("texts", {})}
    assert all(f"${text}" in said for text in texts)
    with pytest.raises(TypeError):
        papers_figures._panel(run={}, columns=[], colour="red")
    with pytest.raises(TypeError):
        papers_catalogue._entry(kind="guarantee", protocols=["shuffle"], year=2022)
