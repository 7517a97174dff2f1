import json

import pytest
import torch
from torch import nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import ClientWork, OneRecordEach, count_parameters
from dpcheckin.learning.models import FrozenFeatures, build_model, cross_entropy
from dpcheckin.learning.run import write_report
from dpcheckin.learning.simulation.runs import build
from dpcheckin.numerals import rounded_up
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
    assert '<a href="certificate.json">certificate.json</a>' in page
    assert facts["data"] in page and facts["model"] in page and f"<td>{torch.__version__}" in page


def test_records_that_several_clients_hold_are_said_to_be_shared(tiny, tmp_path):
    trainer = build(tiny(population=5_000), tmp_path)
    facts = write_report(tmp_path, trainer, trainer.run())
    assert facts["records"] < facts["population"] == 5_000
    said = "1,437 records, dealt to 5,000 clients with replacement: about 3 of them hold the same one"
    assert said in facts["data"] and said in (tmp_path / "report.html").read_text()


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


@pytest.mark.parametrize("shape,parameters", [((1, 28, 28), 26_010), ((3, 32, 32), None), ((1, 8, 8), None)])
def test_built_in_models_take_their_shapes(shape, parameters):
    module = build_model("auto", shape, 10)
    assert module(torch.zeros(2, *shape)).shape == (2, 10)
    assert parameters is None or count_parameters(module) == parameters


def test_a_model_that_cannot_take_the_images_is_refused():
    with pytest.raises(InvalidParameter, match="model"):
        build_model("papers-cnn", (1, 8, 8), 10)
    with pytest.raises(InvalidParameter, match="model"):
        build_model("resnet", (1, 28, 28), 10)
