"""Tests of capture of unmodified TensorFlow scripts, in separate processes."""

from pathlib import Path

import numpy as np
import pytest

from tests.unit.smdebug.scripts import START, RunScript, WriteConfig
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow


QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


FIT = """
import sys, numpy as np, keras
keras.utils.set_random_seed(0)
x, y = np.random.rand(24, 4), np.random.rand(24, 2)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="d")], name="net")
model.compile("sgd", "mse", metrics=["mae"])
model.predict(x, verbose=0)
for _ in range(2):
    model.fit(x, y, batch_size=8, validation_data=(x, y), validation_batch_size=12, verbose=0)
model.evaluate(x, y, verbose=0)
sys.exit(3)
"""


LOOP = """
import tensorflow as tf
kernel = tf.Variable([[1.0], [2.0]], name="kernel")
optimizer = tf.keras.optimizers.SGD(0.1)
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ kernel) ** 2)
    gradients = tape.gradient(loss, [kernel])
    optimizer.apply_gradients(zip(gradients, [kernel]))
compiled = tf.function(step)
for _ in range(3):
    step(tf.ones((3, 2)))
    compiled(tf.ones((3, 2)))
"""


SESSION = """
import tensorflow.compat.v1 as v1
v1.disable_eager_execution()
kernel = v1.get_variable("kernel", (2, 1), initializer=v1.ones_initializer())
loss = v1.losses.mean_squared_error(v1.zeros((3, 1)), v1.ones((3, 2)) @ kernel)
train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, v1.train.get_or_create_global_step())
with v1.train.MonitoredTrainingSession() as session:
    for _ in range(3):
        session.run(train)
"""


@pytest.mark.nightly  # by day end_to_end/test_tensorflow.py has one in the image
def test_an_untouched_fit_is_captured(run_script: RunScript, run: WrittenRun, config: WriteConfig) -> None:
    path = config(
        CollectionConfigurations=[{"CollectionName": "weights"}, {"CollectionName": "gradients"}],
        HookParameters={"train.save_interval": "2", "eval.save_interval": "1", "predict.save_interval": "1"},
    )
    done = run_script(START + FIT, SMDEBUG_CONFIG_FILE_PATH=path, **QUIET)
    assert done.returncode == 3, done.stderr
    modes = [(step, run.index(step)["meta"]["mode"], run.index(step)["meta"]["mode_step"]) for step in run.steps]
    # Nothing of predict before the first training: what only predicts leaves no trace.
    assert modes == [
        (0, "TRAIN", 0),
        (2, "TRAIN", 2),
        (3, "EVAL", 0),
        (4, "EVAL", 1),
        (6, "TRAIN", 4),
        (8, "EVAL", 2),
        (9, "EVAL", 3),
        (10, "EVAL", 4),
    ]
    kernel, gradients = "d/weights/net/d/kernel:0", {"gradients/net/d/kernelGrad", "gradients/net/d/biasGrad"}
    assert set(run.values(0)) == {kernel, "loss", "mae", "batch"} | gradients
    assert set(run.values(10)) == {kernel, "loss", "mae", "batch"}
    assert run.has_ended


@pytest.mark.nightly
def test_untouched_tapes_are_captured(run_script: RunScript, run: WrittenRun, config: WriteConfig) -> None:
    path = config(
        CollectionConfigurations=[{"CollectionName": "weights"}, {"CollectionName": "gradients"}],
        HookParameters={"save_interval": "1"},
    )
    done = run_script(START + LOOP, SMDEBUG_CONFIG_FILE_PATH=path, **QUIET)
    assert done.returncode == 0, done.stderr
    assert run.steps == [0, 1, 2, 3, 4, 5]
    for step in run.steps:
        values = run.values(step)
        assert set(values) == {"weights/kernel:0", "gradients/kernelGrad", "loss"}
        # Of the mean of (a + b) ** 2, whichever of the two functions ran.
        assert values["gradients/kernelGrad"] == pytest.approx(np.full((2, 1), 2 * values["weights/kernel:0"].sum()))
        assert values["loss"] == pytest.approx(values["weights/kernel:0"].sum() ** 2)


@pytest.mark.nightly
def test_an_untouched_session_is_captured(run_script: RunScript, run: WrittenRun, config: WriteConfig) -> None:
    path = config(
        CollectionConfigurations=[{"CollectionName": name} for name in ("weights", "gradients", "optimizer_variables")],
        HookParameters={"save_interval": "2"},
    )
    done = run_script(START + SESSION, SMDEBUG_CONFIG_FILE_PATH=path, **QUIET)
    assert done.returncode == 0, done.stderr
    assert run.steps == [0, 2]
    values = run.values(0)
    assert {"kernel:0", "kernel/Momentum:0", "mean_squared_error/value:0"} <= set(values)
    # Of the mean of (a + b) ** 2 at (1, 1).
    assert values["mean_squared_error/value:0"] == pytest.approx(4)
    (gradient,) = (value for name, value in values.items() if name.startswith("gradients/"))
    assert gradient == pytest.approx(np.full((2, 1), 4))


@pytest.mark.parametrize("switch", [None, "0"], ids=["no config", "switched off"])
def test_nothing_happens_where_nothing_is_asked_for(
    run_script: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path, switch: str | None
) -> None:
    (tmp_path / "tensorflow.py").write_text("GradientTape = None\n")
    environment = {} if switch is None else {"USE_SMDEBUG": switch, "SMDEBUG_CONFIG_FILE_PATH": config()}
    told = "import sys, tensorflow\nprint(sorted(name for name in sys.modules if 'smdebug.t' in name))"
    done = run_script(START + told, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert not run.path.exists()


def test_a_tensorflow_that_cannot_be_imported_says_so_itself(
    run_script: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path
) -> None:
    (tmp_path / "tensorflow.py").write_text("raise ImportError('libtensorflow_framework.so.2: no such file')\n")
    bare = run_script(START + "import tensorflow")
    done = run_script(START + "import tensorflow", SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.returncode == bare.returncode == 1
    assert done.stderr.splitlines()[-1] == "ImportError: libtensorflow_framework.so.2: no such file"
    assert done.stderr.count("Traceback") == 1
    goes_on = "try:\n    import tensorflow\nexcept ImportError as error:\n    print(error)\nimport sys; sys.exit(3)"
    done = run_script(START + goes_on, SMDEBUG_CONFIG_FILE_PATH=config())
    assert (done.returncode, done.stdout, done.stderr) == (3, "libtensorflow_framework.so.2: no such file\n", "")
    assert not run.path.exists()


def test_a_tensorflow_of_which_half_is_there_goes_its_way(
    run_script: RunScript, config: WriteConfig, tmp_path: Path
) -> None:
    (tmp_path / "tensorflow.py").write_text("value = 7\n")
    done = run_script(START + "import tensorflow\nprint(tensorflow.value)", SMDEBUG_CONFIG_FILE_PATH=config())
    assert (done.returncode, done.stdout) == (0, "7\n")
    (line,) = done.stderr.splitlines()
    assert "nothing is captured" in line
    assert "GradientTape" in line
