"""Clients that lie together come within a stated factor of the proved bound, not beyond it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.audit.finding import Verdict
from dpcheckin.audit.influence import InfluenceAttack, attacked_surveys, wanted_share
from dpcheckin.errors import InvalidParameter
from dpcheckin.survey import HeavyHitters, Histogram, Survey


def _cases(**more):
    """One of each kind; few levels, since every report is tried."""
    found = [case for case in attacked_surveys(**more) if case[0].query.kind != "sum"]
    return [
        (replace(survey, mechanism="levels:1") if survey.query.kind == "mean" else survey, values)
        for survey, values in found
    ]


FULLY = _cases(population=400)
PARTLY = _cases(population=800, rate=0.5, rounds=2)


def _named(cases):
    return [f"{survey.query.kind} {survey.mechanism}" for survey, _ in cases]


@pytest.mark.parametrize(("survey", "values"), FULLY, ids=_named(FULLY))
def test_the_attack_reaches_its_share_of_the_bound_and_not_more(survey, values):
    found = InfluenceAttack(survey, values, clients=10, seed=1).play()
    assert found.verdict is Verdict.NOT_VIOLATED, str(found)
    assert wanted_share(survey) <= found.share <= 1 + 1e-9
    assert found.moved_from_honest <= found.bound * (1 + 1e-9)
    assert found.dropped == found.malformed == 3 * survey.rounds


@pytest.mark.parametrize(("survey", "values"), PARTLY, ids=_named(PARTLY))
def test_clients_that_ignore_their_coins_stay_within_the_bound(survey, values):
    """They report in both rounds although honest clients come only half of the time."""
    found = InfluenceAttack(survey, values, clients=10, seed=2).play()
    assert found.verdict is Verdict.NOT_VIOLATED, str(found)


@pytest.mark.slow
def test_the_last_stage_alone_counts_for_heavy_hitters():
    """Two stages: what is sent to the first does not move a count."""
    values = np.where(np.arange(300) % 3, 70_000, 5)
    survey = Survey(HeavyHitters(17, 2), 300, 4.0, "hash:6", rounds=2)
    found = InfluenceAttack(survey, values, clients=5).play()
    assert found.verdict is Verdict.NOT_VIOLATED and found.figure in ("70000", "5")


def test_a_bound_that_is_too_small_is_violated(monkeypatch):
    survey, values = attacked_surveys("histogram", "dary", population=300)[0]
    whole = Histogram.reach
    monkeypatch.setattr(Histogram, "reach", lambda self, plan: 0.95 * whole(self, plan))
    assert InfluenceAttack(survey, values, clients=5).play().verdict is Verdict.VIOLATED


def test_a_decoder_that_counts_what_is_no_report_is_caught(monkeypatch):
    survey, values = attacked_surveys("histogram", "dary", population=300)[0]
    plain = Histogram.decode

    def hides(self, payloads, plan):
        return plain(self, payloads, plan)[0], 0

    monkeypatch.setattr(Histogram, "decode", hides)
    found = InfluenceAttack(survey, values, clients=5).play()
    assert found.dropped < found.malformed and found.verdict is Verdict.VIOLATED


def test_the_command_attacks_and_says_so(tmp_path):
    asked = ["audit", "--attack", "influence", "--question", "count", "--colluding-clients", "7"]
    text = run_cli(*asked, "--out", str(tmp_path))
    assert "7 colluding clients" in text and "not violated" in text
    facts = json.loads((tmp_path / "audit.json").read_text())
    assert facts["verdict"] == "not violated"
    (one,) = facts["findings"]
    assert 0.9 * one["bound"] <= one["moved"] <= one["bound"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--attack", "influence", "--question", "poem"], "question"),
        (["--attack", "influence", "--randomizer", "dary"], "randomizer"),
        (["--attack", "influence", "--delta", "0.1"], "delta"),
        (["--attack", "influence", "--question", "count", "--colluding-clients", "1000"], "clients"),
        (["--question", "count"], "question"),
        (["--colluding-clients", "3"], "colluding-clients"),
    ],
)
def test_bad_arguments_end_with_one_line(more, word):
    message = run_cli("audit", *more, code=2)
    assert word in message and len(message.strip().splitlines()) == 1


def test_nobody_and_everybody_are_no_colluding_clients():
    survey, values = attacked_surveys("count", population=50)[0]
    for clients in (0, 50, 51):
        with pytest.raises(InvalidParameter, match="clients"):
            InfluenceAttack(survey, values, clients)
