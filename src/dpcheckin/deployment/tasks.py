"""From the tables of settings files to tasks: a question or a model, whichever is named.

Analyzer: `[task] kind = "histogram"` (or another kind of `dpcheckin.survey`) is a question, anything else is training
with `data` (a dataset's name or an .npz file, of which only the test part is used), `model`, and settings of learning.
Client: `[data.answers.TOPIC]` are answers, `[data]` itself records to train on (`file`, an .npz with the owner's
`inputs` and `targets`, `model` and `classes`); an owner may have both. Linear and small models need NumPy only; torch
is loaded for the others, and by analyzers that train.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.deployment.answers import Answer, AnsweringTask, NotAnswered, read_answer
from dpcheckin.deployment.numpy_tasks import NumpyClientTask, is_small
from dpcheckin.deployment.questions import is_survey, read_question, survey_of, with_survey
from dpcheckin.deployment.survey_tasks import SurveyAnalyzerTask
from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.tasks import ClientTask, Task
from dpcheckin.service.wire.documents import PlanDocument

if TYPE_CHECKING:
    from dpcheckin.deployment.torch_tasks import TorchAnalyzerTask


def analyzer_task(settings: AnalyzerSettings) -> tuple[AnalyzerSettings, Task, int]:
    """The settings with everything spelled out, the task, and the dimension of a report."""
    if is_survey(settings.task):
        return _survey_task(settings)
    made = _training_task(settings.task, float(settings.randomizer.get("clip", 1.0)))
    return settings, made, made.dimension


def _survey_task(settings: AnalyzerSettings) -> tuple[AnalyzerSettings, Task, int]:
    survey = survey_of(settings)
    question = read_question(settings.task, survey.rounds)
    confidence = settings.task.get("confidence", 0.95)
    simultaneous = settings.task.get("simultaneous", False)
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InvalidParameter("task.confidence", confidence, "strictly between 0 and 1")
    if not isinstance(simultaneous, bool):
        raise InvalidParameter("task.simultaneous", simultaneous, "true or false")
    task = SurveyAnalyzerTask(survey, settings.folder, question.about, confidence, simultaneous)
    spelled_out, size = with_survey(settings, survey)
    return spelled_out, task, size


def _training_task(table: dict[str, Any], clip: float) -> TorchAnalyzerTask:
    """Training by the table `[task]`, for clients that clip to the norm `clip`."""
    import torch

    from dpcheckin.deployment.torch_tasks import TorchAnalyzerTask, learning_settings, make_module
    from dpcheckin.learning import load_dataset

    torch.set_num_threads(1)
    rest = dict(table)
    data = load_dataset(str(rest.pop("data", "digits")))
    model = str(rest.pop("model", "auto"))
    settings = learning_settings(rest)
    module = make_module(model, data, settings.seed)
    return TorchAnalyzerTask(module, settings, clip, data.test_inputs, data.test_targets)


class OwnerTask:
    """What one owner gives: answers, gradients or both; each plan says which it wants."""

    def __init__(self, answers: dict[str, Answer], training: ClientTask | None) -> None:
        self._answering, self._training = AnsweringTask(answers), training
        self._current: ClientTask | None = None

    def join(self, plan: PlanDocument) -> int | None:
        if is_survey(plan.task):
            self._current = self._answering
            return self._answering.join(plan)
        if self._training is None:
            raise NotAnswered("this client has no records to train on")
        self._current = self._training
        return None

    def value(self, model: bytes) -> NDArray[Any]:
        assert self._current is not None, "a plan is joined before its first round"
        return self._current.value(model)


def client_task(table: dict[str, Any], folder: Path) -> ClientTask:
    """The client's task by the `table` `[data]` of its settings, whose files are relative to the `folder`."""
    rest = dict(table)
    named = rest.pop("answers", {})
    if not isinstance(named, dict) or not all(isinstance(answer, dict) for answer in named.values()):
        raise InvalidParameter("data.answers", named, "tables, one a topic")
    answers = {topic: read_answer(answer, folder) for topic, answer in named.items()}
    if "column" in rest:  # one file, one answer, whatever a question is about
        return OwnerTask({**answers, "": read_answer(rest, folder)}, None)
    if not rest and answers:
        return OwnerTask(answers, None)
    return OwnerTask(answers, training_client(rest, folder))


def training_client(table: dict[str, Any], folder: Path) -> ClientTask:
    """The task of an owner with records in a file, which the `table` `[data]` names relative to the `folder`."""
    known = {"file", "model", "classes"}
    if not {"file", "classes"} <= table.keys() <= known:
        raise InvalidParameter("data", sorted(table), "file, classes and perhaps model")
    path = folder / str(table["file"])
    try:
        with np.load(path, allow_pickle=False) as held:
            inputs, targets = held["inputs"], held["targets"]
    except (OSError, KeyError, ValueError) as problem:
        raise InvalidParameter("data.file", str(path), f"inputs and targets ({problem})") from None
    shape, model = tuple(inputs.shape[1:]), str(table.get("model", "auto"))
    if is_small(model, shape):
        return NumpyClientTask(model, inputs, targets, int(table["classes"]))
    import torch

    from dpcheckin.deployment.torch_tasks import TorchClientTask
    from dpcheckin.learning import build_model

    torch.set_num_threads(1)
    module = build_model(model, shape, int(table["classes"]))
    return TorchClientTask(module, torch.from_numpy(inputs).float(), torch.from_numpy(targets).long())
