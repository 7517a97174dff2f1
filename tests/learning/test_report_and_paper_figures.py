import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from dpcheckin.accounting.statements import rounded_up
from dpcheckin.cli.training_figures import NAMES
from dpcheckin.errors import DatasetMissing, InvalidParameter
from dpcheckin.learning import ClientWork, OneRecordEach, count_parameters, load_dataset
from dpcheckin.learning.losses import cross_entropy
from dpcheckin.learning.models import FrozenFeatures, build_model
from dpcheckin.learning.paper_figures import FIGURES, TrainingFigure, run_figure
from dpcheckin.learning.report import write_report
from dpcheckin.learning.simulation.runs import build
from dpcheckin.randomizers import PrivUnit


def test_report_has_picture_page_and_figures(tiny, tmp_path):
    trainer = build(tiny(), tmp_path)
    outcome = trainer.run()
    facts = write_report(tmp_path, trainer, outcome)
    assert json.loads((tmp_path / "report.json").read_text()) == facts
    assert facts["epsilon"] == outcome.guarantee.epsilon.upper
    assert (tmp_path / "accuracy.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "report.html").read_text()
    assert "data:image/png;base64," in page and facts["randomizer"] in page
    assert page.count(facts["statement"]) == 1
    assert f"≤ {rounded_up(facts['epsilon'])}" in page  # not a digit more, and none below
    assert str(facts["epsilon"]) not in page
    assert facts["data"] in page and facts["model"] in page and f"<td>{torch.__version__}" in page


def test_records_that_several_clients_hold_are_said_to_be_shared(tiny, tmp_path):
    trainer = build(tiny(population=5_000), tmp_path)
    facts = write_report(tmp_path, trainer, trainer.run())
    assert facts["records"] < facts["population"] == 5_000
    said = (
        "1,437 records, dealt to 5,000 clients with replacement: about 3 of them hold the same one"
    )
    assert said in facts["data"] and said in (tmp_path / "report.html").read_text()


def test_the_command_knows_every_figure():
    """Names listed without torch are the runs' names; each figure forecasts its time."""
    assert tuple(FIGURES) == NAMES
    assert all(figure.runs and figure.hours() > 0 for figure in FIGURES.values())


def test_a_figure_is_played_and_drawn(tmp_path):
    results = run_figure("p3-figure6", tmp_path, quick=True)
    assert set(results) == {"linear schedule", "P3's steps"}
    assert (tmp_path / "p3-figure6-quick" / "p3-figure6.png").exists()
    again = run_figure("p3-figure6", tmp_path, quick=True)  # finished runs are not played again
    assert {k: v["accuracy"] for k, v in again.items()} == {
        k: v["accuracy"] for k, v in results.items()
    }
    with pytest.raises(InvalidParameter, match="figure"):
        run_figure("p9-figure1", tmp_path)


def test_a_run_without_its_data_is_left_out_and_named(tmp_path, monkeypatch):
    """CIFAR-10 may not be there: the rest is played, and the summary says what is not."""

    def missing(name, data_dir=None):
        if name.startswith("cifar"):
            raise DatasetMissing(f"{name} is nowhere")
        return load_dataset("digits")

    short = replace(FIGURES["p3-figure6"].runs["linear schedule"], data="mnist", model="small")
    short = replace(short, rounds=2, rate=0.1)
    both = {"here": short, "not here": replace(short, data="cifar10")}
    monkeypatch.setitem(FIGURES, "p1-figure6", TrainingFigure("two runs", both, 1.0))
    monkeypatch.setattr("dpcheckin.learning.simulation.runs.load_dataset", missing)
    results = run_figure("p1-figure6", tmp_path)
    assert results["here"]["rounds"] == 2
    assert results["not here"] == {"left_out": "cifar10 is nowhere"}
    monkeypatch.setitem(FIGURES, "p1-figure6", TrainingFigure("one", {"x": both["not here"]}, 1.0))
    with pytest.raises(DatasetMissing, match="cifar10"):
        run_figure("p1-figure6", tmp_path / "other")


def test_a_private_head_on_public_features():
    """CIFAR-10's shape: the body is frozen, only the last layer has gradients and noise."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
    module = FrozenFeatures(body, features=16, classes=10)
    assert count_parameters(module) == 170
    fleet = OneRecordEach(torch.randn(20, 3, 32, 32), torch.randint(0, 10, (20,)))
    work = ClientWork(module, cross_entropy, fleet, PrivUnit(4.0, 170))
    chunk = work.chunks(torch.arange(20).numpy(), (0,))[0]
    assert work.chunk(chunk).estimate_sum.shape == (170,)


@pytest.mark.parametrize(
    "shape,parameters", [((1, 28, 28), 26_010), ((3, 32, 32), None), ((1, 8, 8), None)]
)
def test_built_in_models_take_their_shapes(shape, parameters):
    module = build_model("auto", shape, 10)
    assert module(torch.zeros(2, *shape)).shape == (2, 10)
    assert parameters is None or count_parameters(module) == parameters


def test_a_model_that_cannot_take_the_images_is_refused():
    with pytest.raises(InvalidParameter, match="model"):
        build_model("papers-cnn", (1, 8, 8), 10)
    with pytest.raises(InvalidParameter, match="model"):
        build_model("resnet", (1, 28, 28), 10)
