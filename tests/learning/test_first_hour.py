"""What an engineer stumbles over in the first hour: said in a line, or not there to stumble over."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import TensorDataset

from dpcheckin.errors import InvalidParameter, Unreachable
from dpcheckin.learning import TensorBoard, client_data, train
from dpcheckin.learning.models import FrozenFeatures, usable_device
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.plans import aimed, make_plan, make_randomizer
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.simulation.training import CHECKPOINT
from dpcheckin.learning.sweeps.grid import Sweep

QUICK = {"rounds": 12, "rate": 0.5, "local_epsilon": 6.0, "learning_rate": 1.0, "progress": False}


def clouds(clients: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of points, a point each."""
    draw = np.random.default_rng(2)
    kind = np.arange(clients) % 2
    return draw.normal(size=(clients, 3)) + 2.5 * kind[:, None], kind


def written(path, columns):
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_columns_that_will_hardly_have_been_meant_are_named_once(tmp_path, capsys):
    points, kind = clouds(50)
    columns = {"row": range(100, 150), "site": [3] * 50, "pay": 40_000 + 100 * points[:, 0]}
    table = written(tmp_path / "staff.csv", {**columns, "x": points[:, 1], "left": kind})
    client_data(table, target="left")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert "column 'row' of staff.csv numbers the records" in said[0] and "owner" in said[0]
    assert "column 'site' of staff.csv is 3 in every record" in said[1]
    assert "column 'pay' of staff.csv goes up to 40," in said[2] and "bounds" in said[2]
    client_data(table, target="left", columns=["pay", "x"], bounds={"pay": (0, 100_000)})
    assert capsys.readouterr().err == ""
    client_data(table, target="left", owner="row", columns=["x"], test=table)
    assert capsys.readouterr().err == ""


def test_a_folder_of_images_is_data_with_its_folders_for_classes(tmp_path):
    draw = np.random.default_rng(0)
    for kind, shade in (("dark", 20), ("light", 200)):
        (tmp_path / kind).mkdir()
        for i in range(40):
            pixels = (shade + draw.integers(0, 30, (8, 6))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / kind / f"{i:02}.png")
    data = client_data(tmp_path)
    assert data.labels == ("dark", "light") and data.shape == (1, 8, 6)
    both = torch.cat([data.train_inputs, data.test_inputs])
    assert len(both) == 80 and -1 <= float(both.min()) < -0.7 and 0.5 < float(both.max()) <= 1
    first = np.asarray(Image.open(tmp_path / "dark" / "00.png"), np.float32) / 127.5 - 1
    assert any(np.allclose(record[0].numpy(), first) for record in both)
    trainer = build(RunOptions(data=str(tmp_path), rounds=20, rate=0.5, local_epsilon=8.0, model="linear"))
    assert trainer.run().accuracy > 0.9
    Image.fromarray(np.zeros((8, 7), np.uint8)).save(tmp_path / "light" / "zz.png")
    with pytest.raises(
        InvalidParameter, match=r"zz\.png of 7×8 pixels' is not allowed: expected 6×8 pixels, as 00\.png"
    ):
        client_data(tmp_path)
    (tmp_path / "light" / "zz.png").write_text("no image")
    with pytest.raises(InvalidParameter, match="an image that can be read"):
        client_data(tmp_path)


def test_data_is_shown_in_a_line_and_a_torch_data_set_is_taken_as_it_is():
    points, kind = clouds()
    data = client_data((points, kind), owners=np.arange(200) // 2)
    shown = repr(data)
    assert shown == "<own data: 160 records of 80 owners, each of shape (3,), 2 classes; 40 to evaluate on>"
    numbers = client_data((points, points[:, 0]), task="numbers", name="heights")
    assert repr(numbers) == "<heights: 160 records, each of shape (3,), 1 numbers; 40 to evaluate on>"
    theirs = TensorDataset(torch.tensor(points), torch.tensor(kind))
    outcomes = []
    for source in (theirs, (points, kind)):
        torch.manual_seed(0)
        outcomes.append(train(nn.Linear(3, 2), source, **QUICK).score)
    assert outcomes[0] == outcomes[1] > 0.8


@pytest.mark.parametrize(
    ("changes", "name", "grows"),
    [
        ({"randomizer": "privunit"}, "local_epsilon", True),
        ({"randomizer": "gaussian"}, "noise_multiplier", False),
        ({"randomizer": "gaussian", "protocol": "central"}, "noise_multiplier", False),
        ({"protocol": "random-check-in-fixed", "slots": 400}, "local_epsilon", True),
    ],
)
def test_a_target_is_met_with_the_least_noise_of_four_digits(changes, name, grows):
    options = RunOptions(rounds=20, rate=0.1, epsilon=0.8, **changes)
    found = aimed(options, 2000, 50)
    assert found.epsilon is None

    def cost(value: float) -> float:
        tried = RunOptions(rounds=20, rate=0.1, **{**changes, name: value})
        return make_plan(tried, 2000, make_randomizer(tried, 50)).epsilon(1e-5).upper

    value = getattr(found, name)
    assert float(f"{value:.4g}") == value and cost(value) <= 0.8
    assert cost(value * (1.003 if grows else 0.997)) > 0.8


def test_a_target_that_no_noise_meets_is_refused():
    with pytest.raises(Unreachable, match="whatever the noise"):
        aimed(RunOptions(rounds=1_000_000, rate=0.9, epsilon=1e-6), 100, 50)
    with pytest.raises(InvalidParameter, match="epsilon"):
        aimed(RunOptions(epsilon=float("nan")), 100, 50)


def test_a_target_reaches_the_report_with_what_it_was_solved_to(tmp_path):
    outcome = train(nn.Linear(3, 2), clouds(), epsilon=2.0, out=tmp_path, rounds=5, rate=0.5, progress=False)
    assert 1.99 < outcome.guarantee.epsilon.upper <= 2.0
    page = (tmp_path / "report.html").read_text()
    chosen = page.partition("Settings that were chosen")[2].partition("Settings left as they are")[0]
    assert "local epsilon" in chosen


def test_what_was_meant_is_asked(tmp_path):
    with pytest.raises(InvalidParameter, match="did you mean learning_rate"):
        train(nn.Linear(3, 2), clouds(), lerning_rate=1.0)
    table = written(tmp_path / "t.csv", {"dose": [1, 2, 3, 4], "recovered": [0, 1, 0, 1]})
    with pytest.raises(InvalidParameter, match=r"did you mean recovered\?"):
        client_data(table, target="recoverd")


def test_baselines_stand_beside_the_outcome_and_start_where_it_started(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    start = [p.detach().clone() for p in model.parameters()]
    outcome = train(model, clouds(400), baseline=True, out=tmp_path, **{**QUICK, "local_epsilon": 1.0})
    assert set(outcome.baselines) == {"central", "without_privacy"}
    assert outcome.baselines["without_privacy"] > 0.9 > outcome.score  # so much noise spoils the reports
    assert outcome.baselines["central"] > outcome.score
    assert "under central DP-SGD at the same ε" in str(outcome) and "without privacy" in str(outcome)
    assert not torch.equal(start[0], next(outcome.module.parameters()))
    assert "the same model without privacy" in (tmp_path / "report.html").read_text()
    plain = train(nn.Linear(3, 2), clouds(), **QUICK)
    assert plain.baselines == {} and "the same model" not in str(plain)


def test_an_interrupted_run_keeps_the_round_that_was_shown(tmp_path):
    shown = []

    def interrupt(row):
        shown.append(row["round"])
        if shown.count(7) == 1 and shown[-1] == 7:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    torch.manual_seed(0)
    with pytest.raises(KeyboardInterrupt):
        train(nn.Linear(3, 2), clouds(), out=tmp_path / "run", on_round=interrupt, **QUICK)
    assert signal.getsignal(signal.SIGINT) is before
    assert torch.load(tmp_path / "run" / CHECKPOINT, weights_only=True)["rounds"] == shown[-1] == 7
    later = []
    torch.manual_seed(0)
    resumed = train(
        nn.Linear(3, 2), clouds(), out=tmp_path / "run", on_round=lambda row: later.append(row["round"]), **QUICK
    )
    assert later[0] == 8
    torch.manual_seed(0)
    straight = train(nn.Linear(3, 2), clouds(), **QUICK)
    assert all(map(torch.equal, resumed.module.parameters(), straight.module.parameters()))


def test_a_second_interrupt_does_not_wait(tmp_path):
    def insist(row):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(nn.Linear(3, 2), clouds(), out=tmp_path / "run", on_round=insist, **QUICK)
    assert not (tmp_path / "run" / CHECKPOINT).exists()


def test_a_device_that_is_not_there_is_refused():
    assert usable_device("cpu").type == "cpu"
    with pytest.raises(InvalidParameter, match="expected cpu, cuda, cuda:1 or mps"):
        usable_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InvalidParameter, match="device = 'cuda:1' is not allowed: expected one that torch finds"):
            train(nn.Linear(3, 2), clouds(), device="cuda:1", **QUICK)


def test_frozen_features_move_with_their_head():
    module = FrozenFeatures(nn.Linear(3, 4), 4, 2).to(torch.float64)
    assert module(torch.zeros(1, 3, dtype=torch.float64)).dtype == torch.float64


def test_threads_of_the_program_are_its_own_again_and_those_of_a_sweep_are_given():
    before = torch.get_num_threads()
    seen = []
    train(
        nn.Linear(3, 2), clouds(), threads=before + 1, on_round=lambda _: seen.append(torch.get_num_threads()), **QUICK
    )
    assert set(seen) == {before + 1} and torch.get_num_threads() == before
    one, two = (Sweep(RunOptions(threads=n), {"rate": [0.1]}).cells()[0] for n in (1, 2))
    assert two.options.threads == 2 and one.key == two.key


def test_every_round_is_an_event(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    outcome = train(nn.Linear(3, 2), clouds(), on_round=TensorBoard(tmp_path), **QUICK)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert {"check_ins", "accuracy", "epsilon"} <= set(events.Tags()["scalars"])
    last = events.Scalars("epsilon")[-1]
    assert last.step == 12 and last.value == pytest.approx(outcome.guarantee.epsilon.upper)
    assert events.Scalars("check_ins")[0].step == 1
