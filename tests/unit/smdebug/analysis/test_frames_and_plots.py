import builtins
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from smdebug.exceptions import SMDebugError, SMDebugValueError, TensorUnavailable
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker

mpl.use("Agg")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    run = RunMaker(tmp_path / "run", workers=2)
    for step in range(4):
        mode = ModeKeys.EVAL if step == 3 else ModeKeys.TRAIN
        for rank in range(2):
            tensors = {
                "loss": 10.0 * rank + step,
                "w": np.arange(300, dtype=np.float32) * (step + 1),
                "smdebug/reductions/abs_mean/g": np.float32(step),
                "text": ["a"],
            }
            run.write_step(step, tensors, mode, 0 if step == 3 else step, f"worker_{rank}")
    run.end()
    return create_trial(run.out_dir)


def test_frame_is_long_and_holds_scalars_and_reductions(trial: Trial) -> None:
    frame = trial.to_frame()
    assert list(frame.columns) == ["step", "mode", "mode_step", "worker", "tensor", "reduction", "value"]
    assert len(frame) == 16
    assert set(frame.tensor) == {"loss", "g"}
    assert frame.value.dtype == np.float64
    last = frame[(frame.step == 3) & (frame.worker == "worker_1")].set_index("tensor")
    assert last.loc["loss", ["mode", "mode_step", "value"]].tolist() == ["EVAL", 0, 13.0]
    assert last.loc["g", ["reduction", "value"]].tolist() == ["abs_mean", 3.0]


def test_frame_can_be_narrowed(trial: Trial) -> None:
    assert set(trial.to_frame("^l", mode=ModeKeys.EVAL).step) == {3}
    assert set(trial.to_frame(with_values=False).tensor) == {"g"}
    assert len(trial.to_frame("nothing")) == 0
    with pytest.raises(KeyError, match="PREDICT"):
        trial.to_frame(mode=ModeKeys.PREDICT)


def test_frame_leaves_out_what_is_damaged(trial: Trial) -> None:
    from pathlib import Path

    (Path(trial.path) / "events/000000000001/000000000001_worker_0.tfevents").write_bytes(b"x")
    assert len(trial.to_frame()) == 14


def test_plot_draws_what_was_saved(trial: Trial) -> None:
    axes = trial.plot("loss")
    assert axes.get_xlabel() == "global step"
    eval_axes = trial.plot("^w$", "max", mode=ModeKeys.EVAL)
    assert np.asarray(eval_axes.lines[0].get_xydata()).tolist() == [[0, 299 * 4]]
    assert eval_axes.get_ylabel() == "max"
    assert trial.plot(["g", "loss"], "mean", abs=True).get_ylabel() == "mean of absolute values"


def test_plot_says_what_it_needs(trial: Trial) -> None:
    with pytest.raises(SMDebugValueError, match=r"w has 300 numbers.*reduction='mean'"):
        trial.plot("w")
    with pytest.raises(SMDebugValueError, match="median"):
        trial.plot("w", "median")
    with pytest.raises(TensorUnavailable, match="nothing"):
        trial.plot("nothing")


def test_histogram_counts_every_value(trial: Trial) -> None:
    axes = trial.plot_histogram("w", bins=10)
    shares = axes.collections[0].get_array()
    assert shares is not None
    assert shares.shape == (10, 4)
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    counts, _ = np.histogram(np.arange(300.0), np.linspace(0, 299 * 4, 11))
    np.testing.assert_allclose(shares[:, 0], counts / 300)


def test_histogram_of_values_that_are_not_finite_or_all_the_same(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"same": np.ones(5), "some": np.array([np.nan, 1.0, np.inf]), "none": np.array([np.nan])})
    run.write_step(1, {"same": np.ones(5), "some": np.array([2.0]), "none": np.array([np.inf]), "c": np.ones(2) * 1j})
    run.end()
    trial = create_trial(str(tmp_path))
    for name in ("same", "some"):
        shares = trial.plot_histogram(name).collections[0].get_array()
        assert shares is not None
        np.testing.assert_allclose(shares.sum(axis=0), 1)
    for name, text in (("none", "no finite number"), ("c", "complex128")):
        with pytest.raises(SMDebugValueError, match=text):
            trial.plot_histogram(name)
    with pytest.raises(SMDebugValueError, match="bins"):
        trial.plot_histogram("same", bins=0)


@pytest.mark.parametrize(("package", "ask"), [("pandas", "to_frame"), ("matplotlib", "plot")])
def test_missing_package_is_named_with_its_extra(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, package: str, ask: str
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *arguments)

    # Shown again before the figures are closed, among which may be one of another module's test.
    with monkeypatch.context() as hidden:
        hidden.setattr(builtins, "__import__", without)
        with pytest.raises(SMDebugError, match=rf"{package}.*\[analysis\]"):
            trial.to_frame() if ask == "to_frame" else trial.plot("loss")


def test_plot_has_a_line_for_each_mode_and_worker_that_looks_the_same_in_every_plot(trial: Trial) -> None:
    lines = {str(line.get_label()): line for line in trial.plot("^loss$").lines}
    assert list(lines) == [f"loss ({mode}, worker_{rank})" for rank in range(2) for mode in ("TRAIN", "EVAL")]
    assert np.asarray(lines["loss (TRAIN, worker_1)"].get_xydata()).tolist() == [[0, 10], [1, 11], [2, 12]]
    assert np.asarray(lines["loss (EVAL, worker_1)"].get_xydata()).tolist() == [[3, 13]]
    assert {name: line.get_linestyle() for name, line in lines.items() if "worker_0" in name} == {
        "loss (TRAIN, worker_0)": "-",
        "loss (EVAL, worker_0)": "--",
    }
    assert len({line.get_color() for line in lines.values()}) == 2
    alone = trial.plot("loss", mode=ModeKeys.EVAL).lines[0]
    assert (alone.get_linestyle(), alone.get_label()) == ("--", "loss (worker_0)")


def test_plots_and_frames_have_the_order_of_the_model(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    layers = ["net.0", "net.2", "net.10", "head"]
    written = [*layers, *(f"gradient/{layer}" for layer in reversed(layers))]
    for step in range(2):
        run.write_step(step, {name: np.float32(step) for name in written})
    run.end()
    trial = create_trial(str(tmp_path))
    labels = [line.get_label() for line in trial.plot("^gradient").lines]
    assert labels == [f"gradient/{layer}" for layer in layers]
    assert trial.to_frame("^net|^head").tensor.tolist() == layers * 2
    assert trial.tensor_names(regex="^net|^head") == sorted(layers)
