"""Opacus's engine keeps its books here: same steps, certified figures."""

from __future__ import annotations

import numpy as np
import pytest

from dpcheckin import CheckInRound, RunQuestion, gaussian, guarantee
from dpcheckin.errors import InvalidParameter

accountants = pytest.importorskip("opacus.accountants")
opacus = pytest.importorskip("dpcheckin.learning.opacus")


def stepped(name: str, noise: float, rate: float, steps: int):
    made = accountants.create_accountant(name)
    for _ in range(steps):
        made.step(noise_multiplier=noise, sample_rate=rate)
    return made


def test_a_central_run_is_what_opacus_means_and_no_larger() -> None:
    ours = stepped(opacus.register(60_000), 1.0, 0.01, 300).get_epsilon(1e-5)
    theirs = stepped("prv", 1.0, 0.01, 300).get_epsilon(1e-5)
    assert 0.97 * theirs < ours <= theirs


def test_check_in_steps_are_check_in_rounds() -> None:
    ours = stepped(opacus.register(5_000, "check-in"), 2.0, 0.02, 7)
    assert ours.get_epsilon(1e-5) == guarantee([(CheckInRound(5_000, 0.02, gaussian(2.0)), 7)], 1e-5).epsilon.upper
    assert len(ours) == 7


def test_noise_that_changes_is_kept_apart() -> None:
    ours = stepped(opacus.register(5_000, "check-in"), 2.0, 0.02, 2)
    ours.step(noise_multiplier=3.0, sample_rate=0.02)
    ours.step(noise_multiplier=2.0, sample_rate=0.02)
    run = [(CheckInRound(5_000, 0.02, gaussian(2.0)), 3), (CheckInRound(5_000, 0.02, gaussian(3.0)), 1)]
    assert ours.get_epsilon(1e-5) == pytest.approx(guarantee(run, 1e-5).epsilon.upper, rel=1e-9)
    assert [part[2] for part in ours.history] == [2, 1, 1]


def test_a_state_goes_on_elsewhere_but_not_with_another_population() -> None:
    name = opacus.register(5_000, "check-in")
    first = stepped(name, 2.0, 0.02, 3)
    state = dict(first.state_dict())
    state["history"] = [list(part) for part in state["history"]]  # as some formats keep it
    again = accountants.create_accountant(name)
    again.load_state_dict(state)
    again.step(noise_multiplier=2.0, sample_rate=0.02)
    assert len(again.history) == 1
    assert len(again) == 4
    other = accountants.create_accountant(opacus.register(6_000, "check-in"))
    with pytest.raises(InvalidParameter, match=r"state\.population"):
        other.load_state_dict(state)


def test_nothing_yet_costs_nothing_and_nonsense_is_refused() -> None:
    empty = accountants.create_accountant(opacus.register(5_000))
    assert empty.get_epsilon(1e-5) == 0.0
    with pytest.raises(InvalidParameter, match="steps"):
        empty.guarantee(1e-5)
    with pytest.raises(InvalidParameter, match="rounds"):
        opacus.register(5_000, "federated")
    with pytest.raises(InvalidParameter, match="population"):
        opacus.register(0)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")  # what Opacus says of its own chance
def test_opacus_trains_with_it() -> None:
    """The engine itself: private training of a small model, whose steps are counted by the hook."""
    torch = pytest.importorskip("torch")
    from opacus import PrivacyEngine

    values = torch.tensor(np.random.default_rng(1).normal(size=(64, 3)), dtype=torch.float32)
    data = torch.utils.data.TensorDataset(values, (values.sum(1) > 0).long())
    model = torch.nn.Linear(3, 2)
    engine = PrivacyEngine(accountant=opacus.register(64))
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=8),
        noise_multiplier=1.5,
        max_grad_norm=1.0,
    )
    for batch, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
    steps = len(engine.accountant)
    rate = engine.accountant.history[0][1]
    assert steps == 8
    question = RunQuestion("central", 64, rate=rate, noise_multiplier=1.5, rounds=steps)
    assert engine.get_epsilon(1e-3) == pytest.approx(question.guarantee(1e-3).epsilon.upper, rel=1e-9)
