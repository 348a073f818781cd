"""Tests of a profiled TensorFlow training: steps, tf.data waits and profiles.

The profiles are Python's and TensorFlow's own.
"""

import gzip
import json
import pstats
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.tracing import step_tracer
from tests.unit.smdebug.tensorflow.frameworks import keras, tf
from tests.unit.smdebug.tensorflow.small_models import MakeHook, make_data, make_model

pytestmark = pytest.mark.slow

X, Y = make_data()
PARAMETERS = {
    "DataloaderProfilingConfig": "{'StartStep': 1, 'NumSteps': 2, }",
    "DetailedProfilingConfig": "{'StartStep': 4, 'NumSteps': 1, }",
    "PythonProfilingConfig": "{'StartStep': 3, 'NumSteps': 1, 'ProfilerName': 'cprofile', }",
}


class Profile:
    """What is configured of a job, and what was traced of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def configure(self, parameters: dict[str, str] | None) -> None:
        told = {} if parameters is None else {"LocalPath": str(self.folder / "profiler"), **parameters}
        (self.folder / "profilerconfig.json").write_text(json.dumps({"ProfilingParameters": told}))

    def read_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Each event with its phase."""
        found = []
        for path in sorted(self.folder.rglob("pevents/*/*.json")):
            events = json.loads(path.read_text())
            phases = {each["pid"]: each["args"]["name"] for each in events if "name" in each["args"]}
            found += [(phases[each["pid"]], each) for each in events if each["ph"] == "X"]
        return found

    def count_events(self) -> Counter[str]:
        return Counter(phase for phase, _ in self.read_events())


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    monkeypatch.setenv("SMPROFILER_CONFIG_PATH", str(tmp_path / "profilerconfig.json"))
    # Each step looks whether the configuration is another one.
    monkeypatch.setattr(step_tracer, "_POLL_SECONDS", 0.0)
    (tmp_path / "resourceconfig.json").write_text('{"current_host": "algo-1"}')
    return Profile(tmp_path)


def fit(model: Any, *callbacks: Any, **arguments: Any) -> Any:
    return model.fit(X, Y, callbacks=list(callbacks), **{"batch_size": 8, "verbose": 0, "shuffle": False, **arguments})


def test_what_is_traced_of_fit(profile: Profile, make_hook: MakeHook) -> None:
    profile.configure(PARAMETERS)
    hook = make_hook(save_config=None)
    model = make_model()
    fit(model, hook, epochs=2)
    model.evaluate(X, Y, batch_size=20, verbose=0, callbacks=[hook])
    hook.close()
    assert not hasattr(model.train_function, "smdebug_original"), "Keras has its own function again"
    events = profile.read_events()
    counts = Counter(phase for phase, _ in events)
    assert (counts["Step:ModeKeys.TRAIN"], counts["Step:ModeKeys.EVAL"]) == (10, 2)
    # The evaluation has a step 1 of its own, which has no passes.
    assert (counts["DataIterator"], counts["Forward"], counts["Backward(post-forward)"]) == (3, 2, 2)
    steps = {event["args"]["step_num"]: event for phase, event in events if phase == "Step:ModeKeys.TRAIN"}
    for phase in ("Forward", "Backward(post-forward)"):
        for event in (event for each, event in events if each == phase):
            step = steps[event["args"]["step_num"]]
            assert step["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= step["ts"] + step["dur"]
    assert {event["args"]["step_num"] for phase, event in events if phase == "Forward"} == {"1", "2"}
    assert {number for number, step in steps.items() if step["args"].get("compiles")} == {"1"}
    profiles = sorted(profile.folder.rglob("tensorflow/cprofile/*/*/python_stats"))
    points = [[part.rsplit("-", 1)[0] for part in path.parent.name.split("_")] for path in profiles]
    assert sorted(points) == [["train-3-stepend", "train-4-stepstart"], ["train-3-stepstart", "train-3-stepend"]]
    ran: Any = pstats.Stats(str(profiles[0]))
    assert ran.total_calls > 0
    check_tensorflows_own_profile(profile)


def check_tensorflows_own_profile(profile: Profile) -> None:
    """Check that it is kept where AWS has it."""
    (trace,) = profile.folder.rglob("tensorflow/detailed_profiling/*/000000004/plugins/profile/*/*.trace.json.gz")
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert any("MatMul" in event["name"] for event in events)
    (node, begin, end) = next(trace.parent.glob("*.metadata")).name.removesuffix(".metadata").rsplit("_", 2)
    assert node.endswith("-algo-1")
    assert 0 < int(end) - int(begin) < 600e6
    assert list(trace.parent.glob("*.xplane.pb"))


def test_a_traced_training_is_the_same(profile: Profile, make_hook: MakeHook, quick_way: dict[str, bool]) -> None:
    bare = make_model(**quick_way)
    before = bare.get_weights()
    expected = fit(bare).history
    # Without TensorFlow's own profile, which takes a second.
    profile.configure({name: told for name, told in PARAMETERS.items() if not name.startswith("Detailed")})
    hook = make_hook(save_all=True)
    model = make_model(**quick_way)
    model.set_weights(before)
    history = fit(model, hook).history
    hook.close()
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-6)
    for weights, same in zip(model.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(weights, same, rtol=1e-6)
    assert profile.count_events()["Step:ModeKeys.TRAIN"] == 5


def test_several_batches_of_one_execution_are_waited_for_one_by_one(profile: Profile, make_hook: MakeHook) -> None:
    profile.configure({"DataloaderProfilingConfig": "{'StartStep': 0, 'NumSteps': 9}"})
    hook = make_hook(save_config=None, include_collections=[])
    model = make_model(steps_per_execution=2)
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    model.fit(data, verbose=0, shuffle=False, callbacks=[hook])
    hook.close()
    counts = profile.count_events()
    assert counts["Step:ModeKeys.TRAIN"] == 3
    # Of five; the first two are of a step that is saved.
    assert counts["DataIterator"] == 3


def test_tracing_begins_and_ends_while_the_job_runs(
    profile: Profile, make_hook: MakeHook, quick_way_without_xla: dict[str, bool]
) -> None:
    hook = make_hook(save_config=None)
    model = make_model(**quick_way_without_xla)
    fit(model, hook)
    profile.configure({"FileOpenFailThreshold": "50"})
    fit(model, hook)
    profile.configure(None)
    fit(model, hook)
    hook.close()
    events = profile.read_events()
    assert [event["args"]["step_num"] for phase, event in events if phase.startswith("Step:")] == list("56789")
    assert not list(profile.folder.rglob("*.tmp"))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_what_is_traced_of_a_tape(profile: Profile, make_hook: MakeHook, compiled: bool) -> None:
    profile.configure({"FileOpenFailThreshold": "50"})
    hook = make_hook(save_config=None)
    model, optimizer = make_model(), keras.optimizers.SGD(0.1)
    hook.register_model(model)
    hook.wrap_optimizer(optimizer)

    def step(inputs: Any, labels: Any) -> None:
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - labels))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    run = tf.function(step, autograph=False) if compiled else step
    for _ in range(4):
        run(tf.constant(X[:8], tf.float32), tf.zeros((8, 1)))
    hook.close()
    counts = profile.count_events()
    # Nobody tells when the last one of a compiled function ends.
    assert counts["Step:ModeKeys.TRAIN"] == (3 if compiled else 4)
    assert counts["Forward"] == counts["Backward(post-forward)"] == (0 if compiled else 4)
