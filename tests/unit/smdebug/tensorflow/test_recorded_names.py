"""Names of tensors, compared with a run that the real smdebug 1.0.34 recorded."""

from pathlib import Path

import pytest

from smdebug.trials import create_trial
from tests.unit.smdebug.tensorflow.frameworks import keras
from tests.unit.smdebug.tensorflow.small_models import MakeHook, make_data
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow


def without_path(name: str) -> str:
    """A variable's name without the model's, that Keras 3 puts before it."""
    return name.replace("/net/", "/").replace("smdebug/reductions/", "")


def test_fit_is_named_as_upstream_named_it(make_hook: MakeHook, run: WrittenRun, recorded_runs: Path) -> None:
    recorded = create_trial(str(recorded_runs / "tf_keras_fit" / "run"))
    layers = [keras.Input((4,)), keras.layers.Dense(3, name="d1"), keras.layers.Dense(2, name="d2")]
    model = keras.Sequential(layers, name="net")
    model.compile("adam", "mse", metrics=["mae"], run_eagerly=True)
    x, y = make_data(8)
    hook = make_hook(save_all=True)
    model.fit(x, y, batch_size=8, validation_data=(x, y), verbose=0, callbacks=[hook])
    model.predict(x, batch_size=8, verbose=0, callbacks=[hook])
    hook.close()
    ours = create_trial(str(run.path))
    mine = {without_path(name) for name in ours.tensor_names()}
    shown = {name for name in recorded.tensor_names() if not name.lower().startswith(("adam", "sgd", "scalar"))}
    expected = {name.replace("accuracy", "mae") for name in shown}
    assert expected
    assert expected <= mine, sorted(expected - mine)
    for name in ("loss", "batch"):
        assert ours.tensor(name).value(0).shape == recorded.tensor(name).value(recorded.steps()[0]).shape == (1,)
