"""Tests of ClassImbalance and Confusion."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.builtin.class_imbalance import ClassImbalance
from smdebug.rules.builtin.confusion import Confusion, compute_shares
from smdebug.rules.measuring.classes import count_pairs, pair_classes, to_labels, to_predicted
from tests.unit.smdebug.rules.builtin.judging import EVAL, TRAIN, find_firing, get_finding, write_run

LABEL_NAMES = [
    ("labels", "predictions"),
    ("labels_0", "predictions_0"),
    ("CrossEntropyLoss_input_1", "CrossEntropyLoss_input_0"),
    ("softmaxcrossentropyloss0_input_1", "softmaxcrossentropyloss0_input_0"),
]


def make_labels(*counts: int) -> Any:
    return np.repeat(np.arange(len(counts)), counts)


def make_scores(classes: Any, count: int) -> Any:
    return np.eye(count)[classes] + 0.1


def test_class_numbers() -> None:
    assert to_labels(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == [1, 0]  # type: ignore[union-attr]
    assert to_labels(np.array([1.0, 0.0, 2.0])).tolist() == [1, 0, 2]  # type: ignore[union-attr]
    assert to_labels(np.array([0.5])) is None
    two = np.array([0, 1])
    assert to_predicted(np.array([0.4, 0.5]), two).tolist() == [0, 1]  # type: ignore[union-attr]
    assert to_predicted(np.array([-3.0, 2.5]), two).tolist() == [0, 1]  # type: ignore[union-attr]
    assert to_predicted(np.array([[0.1, 0.9], [0.8, 0.2]]), two).tolist() == [1, 0]  # type: ignore[union-attr]
    assert to_predicted(np.array([0.4, 0.5]), np.array([0, 1, 0])) is None


@pytest.mark.parametrize("labels", [[0, 2], [-1, 1]])
def test_one_fraction_a_sample_tells_no_more_than_two_classes(tmp_path: Path, labels: list[int]) -> None:
    grades, scores = np.repeat(labels, 300), np.linspace(0.1, 0.9, 600)
    assert to_predicted(scores, grades) is None
    assert to_predicted(np.round(scores), grades) is not None
    trial = write_run(tmp_path, [{"labels": grades, "predictions": scores}])
    assert find_firing(ClassImbalance(trial)) == []
    with pytest.raises(TensorUnavailableForStep, match="must be saved with their values"):
        Confusion(trial).invoke_at_step(0)


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("axis", [1, -1])
def test_scores_of_pixels(tmp_path: Path, classes: int, axis: int) -> None:
    """PyTorch has the classes second, Keras last; where both would fit nothing is called mispredicted."""
    labels = np.random.default_rng(0).integers(0, classes, (6, 5, 5))
    right = np.moveaxis(np.eye(classes)[labels], -1, axis)
    wrong = np.moveaxis(np.eye(classes)[(labels + 1) % classes], -1, axis)
    for folder, scores in (("right", right), ("wrong", wrong)):
        trial = write_run(tmp_path / folder, [{"labels": labels, "predictions": scores}])
        assert find_firing(ClassImbalance(trial, samples="10")) == ([0] if (folder, classes) == ("wrong", 3) else [])
        if classes == 3:
            assert find_firing(Confusion(trial)) == ([0] if folder == "wrong" else [])


def test_one_hot_pixels(tmp_path: Path) -> None:
    labels = np.random.default_rng(0).integers(0, 20, (6, 9, 9))
    assert to_labels(np.eye(20)[labels]).tolist() == labels.reshape(-1).tolist()  # type: ignore[union-attr]
    hot = {"labels": np.eye(20)[labels], "predictions": np.eye(20)[labels] + 0.1}
    assert find_firing(ClassImbalance(write_run(tmp_path, [hot]), samples="10")) == []


@pytest.mark.parametrize(
    ("labels", "predictions", "objective", "is_classes"),
    [
        ([0, 1, 1], [0.2, 0.8, 0.4], "", True),
        ([0, 1, 1], [-0.2, 3.8, 0.4], "binary:logitraw", True),
        ([0, 1, 1], [0.2, 0.8, 0.4], "reg:logistic", True),
        ([0, 1, 1], [0.2, 0.8, 0.4], "reg:squarederror", False),
        ([0, 1, 1], [0.2, 0.8, 0.4], "rank:pairwise", False),
        ([0, 1, 2, 3], [0, 1, 2, 3], "", False),
        ([0, 1, 2, 3], [0, 1, 2, 3], "multi:softmax", True),
        ([1, 2, 3] * 9, [1.1, 2.1, 2.9] * 9, "", False),
        ([-1, 1], [-1, 1], "", False),
        ([0.5, 1], [0, 1], "multi:softmax", False),
        ([], [], "multi:softmax", False),
    ],
)
def test_what_is_learned(labels: list[float], predictions: list[float], objective: str, is_classes: bool) -> None:
    assert (pair_classes(np.array(labels), np.array(predictions), objective) is not None) == is_classes


@pytest.mark.parametrize("names", LABEL_NAMES)
@pytest.mark.parametrize(("counts", "fires"), [((450, 45, 55), []), ((460, 45, 55), [0])])
def test_imbalance(tmp_path: Path, names: tuple[str, str], counts: tuple[int, ...], fires: list[int]) -> None:
    labels = make_labels(*counts)
    trial = write_run(tmp_path, [{names[0]: labels, names[1]: make_scores(labels, 3)}])
    rule = ClassImbalance(trial)
    assert find_firing(rule) == fires
    assert bool(fires) == (max(counts) / min(counts) > 10)
    if fires:
        assert get_finding(rule).value == pytest.approx(460 / 45)


@pytest.mark.parametrize("names", LABEL_NAMES)
@pytest.mark.parametrize(("wrong", "fires"), [(210, []), (211, [0])])
def test_misprediction(tmp_path: Path, names: tuple[str, str], wrong: int, fires: list[int]) -> None:
    labels = make_labels(300, 300)
    predicted = labels.copy()
    predicted[:wrong] = 1
    rule = ClassImbalance(write_run(tmp_path, [{names[0]: labels, names[1]: make_scores(predicted, 2)}]))
    assert find_firing(rule) == fires
    if fires:
        assert get_finding(rule).value == pytest.approx(211 / 300)
        assert "samples of class 0" in str(get_finding(rule))


@pytest.mark.parametrize("rest", [{}, {"predictions": np.full(500, np.nan)}], ids=["not saved", "NaN"])
def test_samples_without_a_prediction_are_not_right(tmp_path: Path, rest: dict[str, Any]) -> None:
    labels = make_labels(250, 250)
    wrong = {"labels": labels, "predictions": make_scores(1 - labels, 2)}
    rule = ClassImbalance(write_run(tmp_path, [{"labels": labels, **rest}, wrong]))
    assert find_firing(rule) == [1]
    assert get_finding(rule).value == 1.0
    assert "share of the 250 samples of class 0 is 1," in get_finding(rule).text


def test_labels_are_counted_over_steps_of_one_mode(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [{"labels": make_labels(100, 5)}] * 8
    trial = write_run(tmp_path, steps, [TRAIN, EVAL] * 4)
    assert find_firing(ClassImbalance(trial, samples="315")) == [4, 5, 6, 7]
    assert find_firing(ClassImbalance(trial, samples="316")) == [6, 7]
    assert find_firing(ClassImbalance(trial)) == []


def test_regression_targets_are_not_classes(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"labels": np.linspace(0, 1, 600)}])
    rule = ClassImbalance(trial)
    assert find_firing(rule) == []
    assert rule.inspected == 0


def test_argmax_of_one_hot_sized_scores(tmp_path: Path) -> None:
    labels = np.zeros(6, dtype=int)
    scores = np.tile([[0.0, 1.0]], (6, 1))
    trial = write_run(tmp_path, [{"labels": labels, "predictions": scores}])
    assert find_firing(ClassImbalance(trial, samples="6", argmax="True")) == [0]


def test_matrix_agrees_with_sklearn() -> None:
    random = np.random.default_rng(8)
    labels, predicted = random.integers(0, 4, (2, 300))
    assert np.array_equal(count_pairs(labels, predicted), confusion_matrix(labels, predicted, labels=range(4)))
    expected = confusion_matrix(labels, predicted, labels=range(4), normalize="pred")
    assert np.allclose(compute_shares(count_pairs(labels, predicted)), expected)
    assert count_pairs(labels, predicted, 3).sum() == sum((labels < 3) & (predicted < 3))


@pytest.mark.parametrize(("wrong", "fires"), [(10, []), (12, [0])])
def test_confusion_of_probabilities(tmp_path: Path, wrong: int, fires: list[int]) -> None:
    labels = make_labels(100, 100)
    probabilities = np.where(labels == 1, 0.9, 0.1)
    probabilities[:wrong] = 0.6
    rule = Confusion(write_run(tmp_path, [{"labels": labels, "predictions": probabilities}]))
    assert find_firing(rule) == fires
    if fires:
        assert get_finding(rule).value == pytest.approx(100 / 112)


def test_confusion_off_the_diagonal(tmp_path: Path) -> None:
    labels = make_labels(50, 50, 50)
    predicted = labels.copy()
    predicted[:5] = 2
    trial = write_run(tmp_path, [{"labels": labels, "predictions": make_scores(predicted, 3)}])
    assert find_firing(Confusion(trial)) == []
    rule = Confusion(trial, max_off_diag="0.09")
    assert find_firing(rule) == [0]
    assert get_finding(rule).value == pytest.approx(5 / 55)
    assert find_firing(Confusion(trial, category_no="2", max_off_diag="0.09")) == []


def test_confusion_names_the_class_that_its_plot_shows(tmp_path: Path) -> None:
    labels = make_labels(40, 40, 40)
    predicted = labels.copy()
    # Of class 0 every fifth prediction is wrong, of class 2 nearly the half.
    predicted[40:50], predicted[50:80] = 0, 2
    trial = write_run(tmp_path, [{"labels": labels, "predictions": make_scores(predicted, 3)}])
    rule = Confusion(trial)
    assert find_firing(rule) == [0]
    assert "of class 2 are right" in get_finding(rule).text
    assert get_finding(rule).value == pytest.approx(40 / 70)
    rule = Confusion(trial, min_diag="0")
    assert find_firing(rule) == [0]
    assert "of class 2 have label 1" in get_finding(rule).text
    assert get_finding(rule).value == pytest.approx(30 / 70)


def test_confusion_of_many_classes_takes_the_memory_of_those_that_occur(tmp_path: Path) -> None:
    labels = np.repeat([3, 7, 10**6], 40)
    predicted = labels.copy()
    predicted[40:70] = 10**6
    trial = write_run(tmp_path, [{"labels": labels, "predictions": predicted}])
    rule = Confusion(trial, min_diag="0")
    assert find_firing(rule) == [0]
    assert "of class 1000000 have label 7" in get_finding(rule).text
    assert find_firing(Confusion(trial, category_no="1000000", min_diag="1", max_off_diag="0")) == []


def test_confusion_by_names_collections_and_steps(tmp_path: Path) -> None:
    step = {"y": make_labels(5, 5), "p": make_labels(5, 5)[::-1]}
    trial = write_run(tmp_path, [step] * 3, collections={"labels": {"y"}, "predictions": {"p"}})
    assert find_firing(Confusion(trial)) == [0, 1, 2]
    assert find_firing(Confusion(trial, start_step="1", end_step="2")) == [1]
    assert find_firing(Confusion(trial, labels="y", predictions="y")) == []
    other = Confusion(trial, labels_collection="none")
    assert find_firing(other) == []
    assert other.inspected == 0


def test_labels_that_cannot_be_paired(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"labels": make_labels(5, 5), "predictions": np.zeros(3)}])
    with pytest.raises(TensorUnavailableForStep, match="same samples"):
        Confusion(trial).invoke_at_step(0)


def test_real_run(upstream_run: Any) -> None:
    trial = upstream_run("xgb_all")
    rule = Confusion(trial, min_diag="0", max_off_diag="1")
    assert find_firing(rule) == []
    assert rule.inspected == 2


def test_wrong_parameter(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{}])
    with pytest.raises(SMDebugValueError, match="category_no is '1', expected a whole number of at least 2"):
        Confusion(trial, category_no="1")
    with pytest.raises(SMDebugValueError, match="argmax is 'yes', expected True or False"):
        ClassImbalance(trial, argmax="yes")


def test_several_labels_go_with_their_own_predictions(tmp_path: Path) -> None:
    first, second = np.arange(40) % 2, np.arange(40) // 2 % 2
    tensors = {"labels_a": first, "labels_b": second, "predictions_a": first, "predictions_b": second}
    collections = {what: {f"{what}_a", f"{what}_b"} for what in ("labels", "predictions")}
    assert find_firing(Confusion(write_run(tmp_path / "right", [tensors], collections=collections))) == []
    swapped = tensors | {"predictions_a": second, "predictions_b": first}
    assert find_firing(Confusion(write_run(tmp_path / "swapped", [swapped], collections=collections))) == [0]


def test_labels_that_the_loss_skips_are_not_a_class(tmp_path: Path) -> None:
    labels = np.array([0, 1] * 300 + [-100] * 9000)
    tensors = {"CrossEntropyLoss_input_1": labels, "CrossEntropyLoss_input_0": np.eye(2)[labels.clip(0)]}
    assert find_firing(ClassImbalance(write_run(tmp_path, [tensors]))) == []
    padded = {name: values[600:] for name, values in tensors.items()}
    assert find_firing(ClassImbalance(write_run(tmp_path / "padding", [padded]))) == []


@pytest.mark.parametrize("loss", ["MSELoss", "SmoothL1Loss", "HuberLoss", "l2loss0", "huberloss0"])
def test_whole_numbers_of_a_regression_are_not_classes(tmp_path: Path, loss: str) -> None:
    years = np.array([[2000.0]] * 900 + [[1999.0]])
    rule = ClassImbalance(write_run(tmp_path, [{f"{loss}_input_0": years + 0.5, f"{loss}_input_1": years}]))
    assert find_firing(rule) == []
    assert rule.inspected == 0
