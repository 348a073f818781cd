"""Tests of CheckInputImages and NLPSequenceRatio."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.builtin.check_input_images import CheckInputImages
from smdebug.rules.builtin.nlp_sequence_ratio import NLPSequenceRatio
from tests.unit.smdebug.rules.builtin.judging import EVAL, TRAIN, find_firing, get_finding, write_run


def make_images(count: int, mean: float, channels_last: bool = False) -> Any:
    images = np.random.default_rng(0).standard_normal((count, 3, 4, 4))
    images -= images.mean(axis=(0, 2, 3), keepdims=True)
    images[:, 2] += mean
    return np.moveaxis(images, 1, 3) if channels_last else images


@pytest.mark.parametrize("name", ["hybridsequential0_input_0", "Net_input_0", "inputs", "input_1/outputs"])
@pytest.mark.parametrize(("mean", "fires"), [(0.19, []), (0.21, [1, 2]), (-0.21, [1, 2])])
def test_images(tmp_path: Path, name: str, mean: float, fires: list[int]) -> None:
    rule = CheckInputImages(write_run(tmp_path, [{name: make_images(250, mean)}] * 3))
    assert find_firing(rule) == fires
    if fires:
        assert get_finding(rule).value == pytest.approx(mean)
        assert "channel 2" in str(get_finding(rule))


def test_images_agree_with_numpy(tmp_path: Path) -> None:
    batches = [np.random.default_rng(seed).uniform(0, 1, (7, 2, 3, 3)) for seed in range(4)]
    rule = CheckInputImages(write_run(tmp_path, [{"Net_input_0": each} for each in batches]), threshold_samples="28")
    assert find_firing(rule) == [3]
    means = np.concatenate(batches).mean(axis=(0, 2, 3))
    assert get_finding(rule).value == pytest.approx(means[np.abs(means).argmax()])


def test_a_channel_of_nan_hides_no_other(tmp_path: Path) -> None:
    images = make_images(500, 1.0)
    images[3, 0] = np.nan
    rule = CheckInputImages(write_run(tmp_path, [{"Net_input_0": images}]))
    assert find_firing(rule) == [0]
    assert get_finding(rule).value == pytest.approx(1)


def test_images_of_modes_are_not_mixed(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"Net_input_0": make_images(300, 1.0)}] * 4, [TRAIN, EVAL, TRAIN, EVAL])
    assert find_firing(CheckInputImages(trial)) == [2, 3]


def test_channels_last_collection_and_what_is_not_an_image(tmp_path: Path) -> None:
    images = make_images(500, 1.0, channels_last=True)
    trial = write_run(tmp_path / "a", [{"x": images}], collections={"input_image": {"x"}})
    assert find_firing(CheckInputImages(trial, channel="3")) == [0]
    assert get_finding(rule := _run(CheckInputImages(trial, regex="^x$", channel="3"))).tensor == "x"
    assert rule.inspected == 1
    rows = write_run(tmp_path / "b", [{"Net_input_0": np.ones((600, 8))}])
    assert find_firing(CheckInputImages(rows)) == []
    with pytest.raises(TensorUnavailableForStep, match="channel axis"):
        CheckInputImages(trial, channel="4").invoke_at_step(0)


def _run(rule: Any) -> Any:
    find_firing(rule)
    return rule


@pytest.mark.parametrize(
    "name",
    [
        "embedding0_input_0",
        "encoder.embedding_input_0",
        "bert.word_embeddings_input_0",
        "emb_input_0",
        "embedding_1/inputs",
    ],
)
@pytest.mark.parametrize(("padding", "fires"), [(50, []), (51, [0])])
def test_sequences(tmp_path: Path, name: str, padding: int, fires: list[int]) -> None:
    tokens = np.random.default_rng(0).permutation(np.arange(1, 101))
    tokens[:padding] = 0
    rule = NLPSequenceRatio(write_run(tmp_path, [{name: tokens.reshape(4, 25)}]))
    assert find_firing(rule) == fires
    if fires:
        assert (get_finding(rule).tensor, get_finding(rule).value, get_finding(rule).threshold) == (name, 51.0, 50.0)


def test_sequences_of_a_custom_regex(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"mine": np.zeros(9), "embedding0_input_0": np.ones(9), "other": np.zeros(9)}])
    rule = NLPSequenceRatio(trial, tensor_regex="^mine$")
    assert find_firing(rule) == [0]
    assert (get_finding(rule).tensor, rule.inspected) == ("mine", 1)
    assert find_firing(NLPSequenceRatio(trial, tensor_regex="embedding0_input_0")) == []


def test_tokens_with_thresholds_of_their_own(tmp_path: Path) -> None:
    tokens = np.array([0] * 40 + [7] * 11 + [3] * 49)
    trial = write_run(tmp_path, [{"text": tokens}], collections={"input_sequence": {"text"}})
    rule = NLPSequenceRatio(trial, token_values="0, 7", token_thresholds_percent="50, 10")
    assert find_firing(rule) == [0]
    assert get_finding(rule).value == pytest.approx(100 * np.mean(tokens == 7))
    assert find_firing(NLPSequenceRatio(trial)) == []
    assert find_firing(NLPSequenceRatio(trial, tensor_regex="other", token_thresholds_percent="1")) == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"token_values": "0,1"}, "2 token_values and 1 token_thresholds_percent"),
        ({"token_values": "pad"}, "token_values is 'pad', expected numbers separated by commas"),
        ({"token_thresholds_percent": "120"}, "token_thresholds_percent is '120', expected numbers from 0 to 100"),
    ],
)
def test_wrong_parameters(tmp_path: Path, parameters: dict[str, str], message: str) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        NLPSequenceRatio(write_run(tmp_path, [{}]), **parameters)
