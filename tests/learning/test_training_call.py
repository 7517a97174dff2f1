"""`train` on somebody's own model and data, and the same data from the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from dpcheckin.cli import main
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import ClientWork, GroupedByOwner, client_data, train
from dpcheckin.learning.models import cross_entropy
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, Gaussian, LdpSgd

QUICK = {"rounds": 30, "rate": 0.3, "local_epsilon": 6.0, "progress": False, "threads": 1}


@pytest.fixture
def blobs():
    """Two clouds of 300 clients with two records each."""
    draw = np.random.default_rng(1)
    kind = np.repeat(np.arange(300) % 2, 2)
    inputs = draw.normal(size=(600, 3)) + 3 * kind[:, None]
    return client_data((inputs, kind), owners=np.repeat(np.arange(300), 2))


class Scaled(nn.Module):
    """A model with a parameter outside of any layer, as people write them."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.layer = nn.Linear(3, 2)

    def forward(self, inputs):
        return self.layer(inputs * self.scale)


def test_any_module_is_trained_and_priced(blobs, tmp_path):
    torch.manual_seed(0)
    model = Scaled()
    outcome = train(model, blobs, learning_rate=1.0, out=tmp_path / "run", **QUICK)
    assert outcome.accuracy > 0.85 and outcome.module is model
    assert "differentially private" in str(outcome) and "accuracy" in str(outcome)
    facts = json.loads((tmp_path / "run" / "report.json").read_text())
    assert facts["data"] == "own data: 480 records of 240 clients, their owners"
    assert facts["epsilon"] == outcome.guarantee.epsilon.upper > 0
    again = train(Scaled(), blobs, learning_rate=1.0, out=tmp_path / "run", **QUICK)
    assert again.score == outcome.score  # taken up where it ended


def test_a_randomizer_of_ones_own_is_given_as_it_is(blobs):
    """Without a name, and with its own clip: the run is priced by its pair."""

    @dataclass(frozen=True)
    class Half(LdpSgd):
        def describe(self):
            return "half a sphere of my own"

    own = Half(6.0, 11, clip=0.5)
    outcome = train(Scaled(), blobs, randomizer=own, **{**QUICK, "rounds": 2, "rate": 0.3})
    plan = ShuffledCheckIn(240, 0.3, 2, own)
    assert outcome.guarantee.epsilon == plan.guarantee(1e-5).epsilon
    with pytest.raises(InvalidParameter, match="vectors"):
        train(Scaled(), blobs, randomizer=DaryResponse(1.0, 3), **QUICK)


def test_a_folder_of_other_data_is_not_taken_up(blobs, tmp_path):
    """Other records, another model of the same sizes or another loss are another run."""
    short = {**QUICK, "rounds": 1}
    train(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), blobs, out=tmp_path, **short)
    moved = client_data((blobs.train_inputs + 1, blobs.train_targets), test_share=0.3)
    for model, data in (
        (nn.Sequential(nn.Linear(3, 2), nn.Tanh()), moved),
        (nn.Sequential(nn.Linear(3, 2), nn.ReLU()), blobs),
    ):
        with pytest.raises(InvalidParameter, match="out"):
            train(model, data, out=tmp_path, **short)


def test_a_client_reports_its_mean_gradient_clipped_once():
    """Two records with gradients g and h are reported as (g + h) / 2, cut to the clip."""
    torch.manual_seed(2)
    inputs, targets = torch.randn(5, 3), torch.tensor([0, 1, 1, 0, 1])
    owners = np.array([0, 0, 1, 1, 1])
    module = nn.Linear(3, 2)
    noiseless = Gaussian(1e-9, clip=0.05)
    work = ClientWork(module, cross_entropy, GroupedByOwner(inputs, targets, owners), noiseless)
    (chunk,) = work.chunks(np.array([0, 1]), (0,))
    expected = torch.zeros(8)
    for mine in ([0, 1], [2, 3, 4]):
        loss = nn.functional.cross_entropy(module(inputs[mine]), targets[mine])
        parts = torch.autograd.grad(loss, list(module.parameters()))
        gradient = torch.cat([part.flatten() for part in parts])
        assert gradient.norm() > 0.05
        expected += 0.05 * gradient / gradient.norm()
    assert torch.allclose(work.chunk(chunk).estimate_sum, expected, atol=1e-5)


def test_numbers_are_learned_with_any_loss():
    draw = np.random.default_rng(3)
    inputs = draw.uniform(-1, 1, size=(400, 2))
    data = client_data((inputs, inputs @ np.array([1.0, -1.0])))
    for loss in (None, nn.L1Loss(reduction="none")):
        torch.manual_seed(0)
        before = nn.Linear(2, 1)
        measure = nn.L1Loss() if loss else nn.MSELoss()
        start = measure(before(data.test_inputs), data.test_targets).item()
        outcome = train(before, data, loss, learning_rate=0.3, **QUICK)
        assert outcome.scored.name == "test_loss" and outcome.score < start / 2
        found = measure(before(data.test_inputs), data.test_targets).item()
        assert outcome.score == pytest.approx(found, rel=1e-5)
        with pytest.raises(InvalidParameter, match="accuracy"):
            _ = outcome.accuracy


def frozen():
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    "model,changes,words",
    [
        (nn.Linear(4, 2), {}, r"records of shape \(3,\)"),
        (nn.Linear(3, 1), {}, r"one for each class|a loss that fits"),
        (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), {}, "GroupNorm"),
        (nn.Sequential(nn.Dropout(), nn.Linear(3, 2)), {}, "without chance"),
        (frozen(), {}, "frozen parameter 'bias'"),
        (nn.Identity(), {}, "a module with parameters|one for each class"),
        (nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), {}, "one row|a loss that fits"),
        ("resnet", {}, "torch.nn.Module"),
        (nn.Linear(3, 2), {"loss": nn.CrossEntropyLoss()}, "reduction='none'"),
        (nn.Linear(3, 2), {"score": "beauty"}, "score = 'beauty'"),
        (nn.Linear(3, 2), {"data_dir": "x"}, "data_dir"),
        (nn.Linear(3, 2), {"colour": 3}, "'colour'"),
        (nn.Linear(3, 2), {"population": 9}, "owners are clients"),
        (nn.Linear(3, 2), {"backend": "processes", "loss": lambda o, t: cross_entropy(o, t)}, "no lambda"),
    ],
    ids=range(14),
)
def test_what_does_not_fit_is_one_line(blobs, model, changes, words):
    with pytest.raises(InvalidParameter, match=words) as problem:
        train(model, blobs, **{**QUICK, **changes})
    assert "\n" not in str(problem.value)


def test_the_command_takes_a_csv(blobs, tmp_path, monkeypatch, capsys):
    """The same clients, the same model and seed: the same guarantee as the call's."""
    rows = [
        f"{o},{a:.3f},{b:.3f},{c:.3f},{'yes' if t else 'no'}"
        for o, (a, b, c), t in zip(blobs.owners, blobs.train_inputs.tolist(), blobs.train_targets.tolist(), strict=True)
    ]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["who,a,b,c,well", *rows]) + "\n")
    base = ["dpcheckin", "train", "--data", str(path), "--rounds", "5", "--threads", "1", "--json"]

    def run(*arguments):
        monkeypatch.setattr("sys.argv", [*base, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr()

    code, printed = run("--target", "well", "--owner", "who", "--bounds", "a=-4:8,b=-4:8")
    assert code == 0, printed.err
    facts = json.loads(printed.out)
    assert facts["population"] == 192 and facts["records"] == 384  # a fifth is held out
    assert facts["data"].endswith("384 records of 192 clients, their owners")
    code, printed = run("--target", "well", "--columns", "a, b")  # every record is a client
    assert code == 0 and json.loads(printed.out)["population"] == 384
    for arguments, words in (
        (["--target", "ill"], "target = 'ill'"),
        ([], "--target is needed: a column of people.csv: who, a"),
        (["--target", "well", "--owner", "who", "--bounds", "a=1"], "bounds = 'a=1'"),
    ):
        code, printed = run(*arguments)
        assert code == 2 and words in printed.err and len(printed.err.strip().splitlines()) == 1
    monkeypatch.setattr("sys.argv", ["dpcheckin", "train", "--rounds", "2", "--target", "x"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "no table" in capsys.readouterr().err
