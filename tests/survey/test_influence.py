"""The bound on colluding clients, against every small run there is and against simulated ones."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_in_process import run_cli
from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import Count, Distribution, HeavyHitters, Histogram, Mean, Quantiles, Survey
from dpcheckin.survey.estimates import FAILURE, largest_moves, least_sizes
from dpcheckin.survey.questions.distribution import non_decreasing


def _figure(worlds, contributions):
    """A sum of means, one a part; None if a part has no report."""
    total = 0.0
    for part, reports in enumerate(worlds):
        if not reports:
            return None
        total += np.mean([contributions[part][kind] for kind in reports])
    return total


@pytest.mark.parametrize("parts", [1, 2])
def test_no_small_run_is_moved_further_than_the_bound(parts):
    """Complete: two kinds of report and two honest reports a part, at most two hostile ones."""
    contributions = [(0.0, 1.0), (-1.0, 2.0)][:parts]
    reach = np.array([[high - low for low, high in contributions]])
    reports = [None, *itertools.product(range(parts), range(2))]  # None: stays away
    largest = 0.0
    for honest in itertools.product(itertools.product(range(2), repeat=2), repeat=parts):
        worlds = []
        for hostile in itertools.product(reports, repeat=2):
            world = [list(kinds) for kinds in honest]
            for one in hostile:
                if one is not None:
                    world[one[0]].append(one[1])
            worlds.append((world, _figure(world, contributions)))
        for (seen, here), (_, there) in itertools.product(worlds, repeat=2):
            bound = largest_moves(reach, [len(part) for part in seen], 2)[0]
            assert abs(here - there) <= bound + 1e-12
            largest = max(largest, abs(here - there) / bound)
    assert largest == pytest.approx(1.0) if parts == 1 else largest > 0.6


@given(st.integers(1, 4), st.integers(0, 50), st.lists(st.integers(0, 60), min_size=4, max_size=4), st.integers(1, 10))
def test_more_liars_move_more_and_more_reports_less(parts, hostile, sizes, more):
    reach = np.arange(1.0, 2 * parts + 1).reshape(2, parts)
    here = largest_moves(reach, sizes[:parts], hostile)
    assert (here <= largest_moves(reach, sizes[:parts], hostile + more) + 1e-12).all()
    assert (largest_moves(reach, [s + more for s in sizes[:parts]], hostile) <= here + 1e-12).all()
    assert (here <= reach.sum(axis=1) + 1e-12).all()


def test_as_few_honest_reports_as_stated_come_hardly_ever():
    """Against an exact sum of the binomial law."""
    from math import comb

    (least,) = least_sizes(60, 0.4, 1)
    below = sum(comb(60, k) * 0.4**k * 0.6 ** (60 - k) for k in range(int(least)))
    assert below <= FAILURE < below + comb(60, int(least)) * 0.4**least * 0.6 ** (60 - least)
    assert least_sizes(60, 1.0, 1) == [60.0]


def test_what_is_stated_before_a_run_covers_the_run():
    for query, mechanism in ((Histogram(6), "dary"), (Distribution(0, 1, 16), "tree:4")):
        survey = Survey(query, 2000, 3.0, mechanism, rate=0.3, rounds=2)
        rng = np.random.default_rng(1)
        values = rng.integers(6, size=2000) if mechanism == "dary" else rng.random(2000)
        from dpcheckin.survey import simulate

        found = simulate(survey, values, seed=1).estimate
        assert sum(found.parts or (found.reports,)) == found.reports
        assert survey.influence(10, found) < survey.influence(10)
        assert survey.influence(10, found) <= survey.influence(10, found.reports)


def test_everybody_reports_so_nothing_is_left_to_chance():
    survey = Survey(Histogram(6), 500, 3.0)
    gap = survey.randomizer.own_support - survey.randomizer.other_support
    assert survey.influence(7) == pytest.approx(7 / gap)
    assert survey.influence(7, 500) == pytest.approx(7 / gap)
    assert survey.influence(0) == 0.0


@given(st.lists(st.floats(-1, 2), min_size=3, max_size=12), st.data())
def test_making_a_function_non_decreasing_keeps_order(shares, data):
    """What the band of a distribution function rests on."""
    moves = data.draw(st.lists(st.floats(0, 0.5), min_size=len(shares), max_size=len(shares)))
    low, high = np.array(shares), np.array(shares) + np.array(moves)
    assert (non_decreasing(low) <= non_decreasing(high) + 1e-9).all()


def test_quantiles_are_moved_within_a_range_of_the_numbers():
    survey = Survey(Quantiles(0, 10, 20, (0.1, 0.5)), 500, 5.0)
    from dpcheckin.survey import simulate

    found = simulate(survey, np.linspace(0, 10, 500), seed=1).estimate
    each = survey.moves(10, found)
    assert each.shape == (2,) and (each > 0).all() and (each < 2).all()
    assert (survey.moves(499, found) <= 10).all()


@pytest.mark.parametrize("clients", [-1, 101, 1.5, True, "1"])
def test_what_is_no_number_of_clients_is_refused(clients):
    with pytest.raises(InvalidParameter, match="clients"):
        Survey(Count(), 100, 2.0).influence(clients)


def test_both_commands_state_the_bound_of_the_clients_asked_for(tmp_path):
    asked = ["survey", "plan", "histogram", "--categories", "5", "--population", "500"]
    asked += ["--rounds", "1", "--randomizer", "dary", "--colluding-clients", "3,40"]
    facts = json.loads(run_cli(*asked, "--json"))
    assert set(facts["influence"]) == {"3", "40"}
    fields = ("query", "population", "local_epsilon", "mechanism", "rate", "rounds", "colluding")
    survey = Survey.from_document({name: facts[name] for name in fields})
    assert facts["influence"]["40"] == survey.influence(40)
    assert "colluding clients: 40" in run_cli(*asked)
    data = tmp_path / "a.csv"
    data.write_text("x\n" + "\n".join(str(i % 5) for i in range(500)) + "\n")
    run = ["survey", "run", *asked[2:5], *asked[7:], "--data", str(data), "--column", "x"]
    text = run_cli(*run, "--out", str(tmp_path / "out"))
    assert "colluding clients: 3 moved no figure by more than" in text
    facts = json.loads((tmp_path / "out" / "estimate.json").read_text())
    assert len(facts["influence_of_each"]["40"]) == 5
    assert facts["influence"]["40"] == max(facts["influence_of_each"]["40"])
    assert "40 colluding clients" in (tmp_path / "out" / "report.html").read_text()
    for wrong in ("many", "501", ""):
        assert "colluding" in run_cli(*asked[:-1], wrong, code=2)


def test_heavy_hitters_and_means_scale_with_the_unit():
    hashed = Survey(HeavyHitters(24, 5), 1000, 4.0, "hash:6", rounds=2)
    p, q = hashed.randomizer.own_support, hashed.randomizer.other_support
    assert hashed.influence(10) == pytest.approx(10 / (p - q))
    one, ten = (Survey(Mean(0, top), 1000, 4.0, "levels:4").influence(10) for top in (1, 10))
    assert ten == pytest.approx(10 * one)
