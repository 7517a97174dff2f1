"""What the papers' algorithms ask for beside plain gradients: local steps, projection, reports."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from dpcheckin.accounting import CheckInRound, WindowRound, binary_response, compose
from dpcheckin.cli import main
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import ClientWork, GroupedByOwner, OneRecordEach, Settings
from dpcheckin.learning.gradients.engine import LocalSteps
from dpcheckin.learning.models import cross_entropy
from dpcheckin.learning.simulation.client_work import Reports
from dpcheckin.learning.simulation.runs import build
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.randomizers import DiscreteGaussianVector, Gaussian, L1Bit, LInfinityBit, PrivUnit, SkellamVector


def _by_hand(module, inputs, targets, steps, rate):
    copy = nn.Linear(3, 2)
    copy.load_state_dict(module.state_dict())
    optimizer = torch.optim.SGD(copy.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(copy(inputs), targets).backward()
        optimizer.step()
    pairs = zip(module.parameters(), copy.parameters(), strict=True)
    return torch.cat([(a - b).detach().flatten() for a, b in pairs])


@pytest.mark.parametrize("owned", [True, False])
def test_a_client_reports_its_clipped_model_difference(owned):
    """Three local steps over all records of a client, as plain SGD takes them."""
    torch.manual_seed(0)
    inputs, targets = torch.randn(6, 3), torch.tensor([0, 1, 1, 0, 1, 0])
    module = nn.Linear(3, 2)
    owners = np.array([0, 0, 0, 1, 1, 2])
    fleet = GroupedByOwner(inputs, targets, owners) if owned else OneRecordEach(inputs, targets)
    noiseless = Gaussian(1e-9, clip=0.4)
    work = ClientWork(module, cross_entropy, fleet, noiseless, local=LocalSteps(3, 0.5))
    clients = range(fleet.population)
    (chunk,) = work.chunks(np.array(clients), (0,))
    result = work.chunk(chunk)
    expected, clipped = torch.zeros(8), 0
    for client in clients:
        mine = np.flatnonzero(owners == client) if owned else [client]
        moved = _by_hand(module, inputs[mine], targets[mine], 3, 0.5)
        clipped += int(moved.norm() > 0.4)
        expected += moved * min(1.0, 0.4 / float(moved.norm()))
    assert torch.allclose(result.estimate_sum, expected, atol=1e-5)
    assert result.clipped == clipped and clipped > 0


def test_local_steps_cost_what_gradients_cost(tiny):
    plain, local = build(tiny()), build(tiny(local_steps=4, local_learning_rate=0.5))
    assert local.plan == plain.plan and local.fingerprint() != plain.fingerprint()
    outcome = local.run()
    assert outcome.guarantee.epsilon == plain.plan.guarantee(1e-5).epsilon
    assert outcome.accuracy > 0.15  # more than chance after twelve rounds
    for bad in ({"local_steps": 0}, {"local_steps": 2, "local_learning_rate": math.nan}):
        with pytest.raises(InvalidParameter, match="local_"):
            build(tiny(**bad))


def test_steps_fall_with_the_root_of_the_round():
    settings = Settings(learning_rate=2.0, schedule="inverse-sqrt")
    assert [settings.rate_at(i, 100) for i in (0, 3, 24)] == pytest.approx([2.0, 1.0, 0.4])


def test_parameters_stay_in_the_ball(tiny):
    trainer = build(tiny({"radius": 0.5, "learning_rate": 5.0}))
    outcome = trainer.run()
    length = math.sqrt(sum(float(p.detach().square().sum()) for p in outcome.module.parameters()))
    assert length <= 0.5 * (1 + 1e-6)
    free = build(tiny({"learning_rate": 5.0})).run()
    assert sum(float(p.detach().square().sum()) for p in free.module.parameters()) > 1
    for bad in (0.0, math.nan, math.inf):
        with pytest.raises(InvalidParameter, match="radius"):
            Settings(radius=bad)


@pytest.mark.parametrize("name,kind,norm", [("l1-bit", L1Bit, 1), ("linf-bit", LInfinityBit, None)])
def test_one_bit_reports_train_at_the_price_of_binary_response(tiny, name, kind, norm):
    trainer = build(tiny(randomizer=name, model="linear", rounds=3))
    assert isinstance(trainer.plan.randomizer, kind) and trainer.work.reports is Reports.EACH
    outcome = trainer.run()
    run = compose([(CheckInRound(1437, 0.1, binary_response(4.0)), 3)])
    assert outcome.guarantee.epsilon.upper == run.epsilon(1e-5).upper
    with pytest.raises(InvalidParameter, match="per_tensor"):
        build(tiny(randomizer=name, per_tensor=True))


def test_clipping_is_counted_in_the_randomizer_s_own_norm():
    inputs, targets = torch.eye(3) * 2, torch.tensor([0, 1, 0])
    module = nn.Linear(3, 2)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    counted = {}
    # a gradient is (±1/2) ⊗ (2 e_i, 1): l1 norm 3, l2 norm 1.58, largest entry 1
    for kind in (L1Bit, LInfinityBit):
        for clip in (0.9, 1.1, 2.9, 3.1):
            fleet = OneRecordEach(inputs, targets)
            work = ClientWork(module, cross_entropy, fleet, kind(2.0, 8, clip), Reports.EACH)
            counted[kind, clip] = work.chunk(work.chunks(np.arange(3), (0,))[0]).clipped
    assert [counted[L1Bit, c] for c in (0.9, 1.1, 2.9, 3.1)] == [3, 3, 3, 0]
    assert [counted[LInfinityBit, c] for c in (0.9, 1.1, 2.9, 3.1)] == [3, 0, 0, 0]


@pytest.mark.parametrize("reports", ["sum", "each"])
@pytest.mark.parametrize("name,kind", [("skellam", SkellamVector), ("discrete-gaussian", DiscreteGaussianVector)])
def test_integer_sums_train_at_their_own_price(tiny, reports, name, kind):
    chosen = tiny(
        protocol="distributed-check-in",
        randomizer=name,
        noise_multiplier=2.0,
        model="linear",
        rounds=2,
        reports=reports,
    )
    trainer = build(chosen)
    plan = DistributedCheckIn(1437, 0.1, 2, kind(2.0, 650))
    assert trainer.plan == plan
    assert trainer.run().guarantee.epsilon.upper == plan.epsilon(1e-5).upper


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["dpcheckin", "train", "--threads", "1", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


def test_windows_of_the_clients_own_from_a_file(command, tmp_path):
    """Algorithm 1 with R_j and p_j of a table, priced by the worst of them."""
    path = tmp_path / "windows.csv"
    rows = [f"{i % 50},{i % 50 + 49 + i % 3},{0.5 if i % 2 else 0.25}" for i in range(1437)]
    path.write_text("\n".join(["first,last,probability", *rows]) + "\n")
    fixed = ("--protocol", "random-check-in-fixed", "--minibatch", "10", "--local-epsilon", "1")
    code, out, err = command(*fixed, "--windows", str(path), "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["rounds"] == 11  # slots 0 to 100, ten to a step, the last ones dummies
    worst = WindowRound(50, PrivUnit(1.0, 2410).pair, 0.5)
    same = compose([(worst, 1)]).epsilon(1e-5).upper
    assert facts["epsilon"] == pytest.approx(same, rel=1e-6)
    bad = tmp_path / "bad.csv"
    for text, words in (
        ("first,last\n0,4\n", "1 rows"),
        ("first\n0\n", "'last'"),
        ("first,last\n4,0\n", "first ≤ last"),
        ("first,last\na,0\n", "numbers in column 'first'"),
    ):
        bad.write_text(text)
        code, _, err = command(*fixed, "--windows", str(bad))
        assert code == 2 and words in err and len(err.strip().splitlines()) == 1


def test_repetitions_and_check_in_probability(command):
    fixed = ("--protocol", "random-check-in-fixed", "--slots", "40", "--minibatch", "8")
    once = command(*fixed, "--check-in-probability", "0.1", "--json")
    twice = command(*fixed, "--check-in-probability", "0.1", "--repetitions", "3", "--json")
    assert once[0] == twice[0] == 0, twice[2]
    first, second = json.loads(once[1]), json.loads(twice[1])
    assert (first["rounds"], second["rounds"]) == (5, 15)
    assert second["epsilon"] > first["epsilon"]
    for arguments, words in (
        (("--repetitions", "2"), "protocol = 'shuffled-check-in'"),
        (("--randomizer", "skellam"), "randomizer = 'skellam'"),
        (("--windows", "x.csv"), "protocol = 'shuffled-check-in'"),
        (("--local-steps", "0"), "local-steps = 0"),
        (("--radius", "0"), "radius = 0"),
    ):
        code, _, err = command("--rounds", "2", *arguments)
        assert code == 2 and words in err, err
