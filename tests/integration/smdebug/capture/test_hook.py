"""Tests of the hook base: threads, forks, restarted jobs and absent steps."""

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.capture.hook import BaseHook
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError, SMDebugTypeError
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.reading.reader import FileReader
from smdebug.storage.outage import ObjectStoreError
from smdebug.tracing.step_tracer import StepTracer
from smdebug.trials import Trial, create_trial
from smdebug.writing import step_writer
from smdebug.writing.run_writer import Worker
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.scripts import build_script_runner
from tests.waiting import wait_until


class PlainHook(BaseHook):
    def get_worker(self) -> Worker:
        return Worker("worker_0", is_chief=True, count=1)


MakeHook = Callable[..., PlainHook]


@pytest.fixture
def make_hook(tmp_path: Path) -> Iterator[MakeHook]:
    def build(name: str = "run", **more: Any) -> PlainHook:
        config = SaveConfig(save_interval=1)
        return PlainHook(out_dir=str(tmp_path / name), save_config=config, include_regex=".*", **more)

    with closing_hooks(build) as make:
        yield make


@pytest.fixture
def quick_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def read_everything(trial: Trial) -> dict[tuple[str, int], np.ndarray[Any, Any]]:
    return {
        (name, step): trial.tensor(name).value(step) for step in trial.steps() for name in trial.tensor_names(step=step)
    }


def test_several_threads_save_at_once(make_hook: MakeHook, tmp_path: Path, quick_switching: None) -> None:
    hook = make_hook()
    ended = threading.Event()
    hook._increment_step()

    def save(rank: int) -> None:
        number = 0
        while not ended.is_set():
            hook.save_scalar(f"number_{rank}", number)
            hook.save_tensor(f"vector_{rank}", np.full(5, number))
            number += 1

    threads = [threading.Thread(target=save, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    try:
        for step in range(1, 31):
            hook._increment_step()
            hook.recorder.save("loss", np.full(3, step))
            time.sleep(0.002)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    hook.close()
    values = read_everything(create_trial(str(tmp_path / "run")))
    assert [int(values["loss", step][0]) for step in range(1, 31)] == list(range(1, 31))
    assert all((value == value.flat[0]).all() for value in values.values())
    assert not list(tmp_path.rglob("*.tmp"))


def run_child(work: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    try:
        # What has ended stays until its status is read below, and takes no signal.
        wait_until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT), "the child to end")
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert status == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["step", "save", "scalar", "mode", "close"])
def test_forked_child_leaves_the_step_in_progress_to_its_parent(make_hook: MakeHook, tmp_path: Path, what: str) -> None:
    hook = make_hook(export_tensorboard=True)

    def begin_step() -> None:
        hook._increment_step()
        hook.recorder.save("child", np.ones(3))

    def save_scalar() -> None:
        hook.save_scalar("child", 1)
        hook.save_tensor("child", np.ones(3))

    work: Callable[[], object] = {
        "step": begin_step,
        # Too large to wait in memory for the end of the step.
        "save": lambda: hook.recorder.save("child", np.ones(30_000)),
        "scalar": save_scalar,
        "mode": lambda: hook.set_mode(modes.EVAL),
        "close": hook.close,
    }[what]
    hook._increment_step()
    hook.recorder.save("before", np.ones(30_000))
    run_child(work)
    hook.recorder.save("after", np.full(30_000, 2.0))
    hook._increment_step()
    hook.close()
    values = read_everything(create_trial(str(tmp_path / "run")))
    assert {key: float(value.mean()) for key, value in values.items()} == {("before", 0): 1, ("after", 0): 2}


def test_fork_while_another_thread_saves_does_not_hang_the_child(make_hook: MakeHook, tmp_path: Path) -> None:
    hook = make_hook()
    hook._increment_step()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with hook.recorder._lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        run_child(lambda: hook.save_tensor("child", np.ones(2)))
    finally:
        release.set()
        holder.join()
    hook.recorder.save("parent", np.ones(2))
    hook.close()
    assert list(read_everything(create_trial(str(tmp_path / "run")))) == [("parent", 0)]


@pytest.mark.parametrize("makes_a_step", [True, False])
def test_scalar_before_the_first_step_of_a_restarted_job_leaves_the_saved_steps_alone(
    make_hook: MakeHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, makes_a_step: bool
) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (tmp_path / "checkpointconfig.json").write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "checkpointconfig.json"))
    first = make_hook()
    for step in range(3):
        first._increment_step()
        first.recorder.save("loss", np.full(3, step))
        (checkpoints / f"at_{step}").write_text("weights")
    first._increment_step()
    claim = first.recorder._runs._claim
    assert claim is not None
    claim.release()
    first.recorder.is_closed = True
    restarted = make_hook()
    assert restarted.step == 2
    restarted.save_scalar("rate", 0.5)
    if makes_a_step:
        restarted._increment_step()
        restarted.recorder.save("loss", np.full(3, 9))
    restarted.close()
    values = read_everything(create_trial(str(tmp_path / "run")))
    assert [int(values["loss", step][0]) for step in range(3)] == [0, 1, 2]
    assert values["scalar/rate", 3] == 0.5
    assert ("loss", 3) in values if makes_a_step else ("loss", 3) not in values


def test_tensors_that_wait_for_a_step_do_not_pile_up(make_hook: MakeHook, tmp_path: Path) -> None:
    hook = make_hook()
    for number in range(100):
        hook.save_tensor("t", np.full(10, number))
    assert len(hook.recorder._waiting_tensors) == 1
    hook._increment_step()
    hook.close()
    for number in range(100):
        hook.save_tensor(f"late_{number}", np.ones(10))
        hook.save_scalar("late", number)
    assert not hook.recorder._waiting_tensors
    assert not hook.recorder._waiting_scalars
    values = read_everything(create_trial(str(tmp_path / "run")))
    assert {key: int(value[0]) for key, value in values.items()} == {("t", 0): 99}


def test_tensor_written_by_hand_is_not_written_in_a_dry_run(make_hook: MakeHook, tmp_path: Path) -> None:
    hook = make_hook(dry_run=True)
    hook._increment_step()
    hook._write_raw_tensor_simple("t", 1.0)
    hook.close()
    assert not (tmp_path / "run" / "events").exists()


def test_what_is_left_of_a_failed_step_does_not_reach_the_next(
    make_hook: MakeHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook()
    hook._increment_step()
    hook.recorder.save("t", np.zeros(3))
    monkeypatch.setattr(hook.recorder.tensors, "flush", lambda _writer: 1 / 0)
    hook.recorder.end()
    assert "ZeroDivisionError" in said.text
    monkeypatch.undo()
    hook._increment_step()
    hook.recorder.save("t", np.ones(3))
    hook.close()
    values = read_everything(create_trial(str(tmp_path / "run")))
    assert {key: int(value[0]) for key, value in values.items()} == {("t", 1): 1}


def test_collection_that_is_not_to_be_made_is_missing(make_hook: MakeHook) -> None:
    hook = make_hook()
    with pytest.raises(SMDebugError, match="nothing_like_it"):
        hook.get_collection("nothing_like_it", create=False)
    assert hook.get_collection("mine") is hook.get_collection("mine", create=False)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes_are_saved_as_float32(make_hook: MakeHook, tmp_path: Path, dtype: str) -> None:
    hook = make_hook(reduction_config=ReductionConfig(["max"], save_raw_tensor=True))
    hook._increment_step()
    hook.save_tensor("t", np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype)).T)
    hook.close()
    tensor = create_trial(str(tmp_path / "run")).tensor("t")
    assert tensor.value(0).dtype == np.float32
    assert tensor.value(0).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensor.reduction_values(0)["max", False] == 5
    index = json.loads(next((tmp_path / "run").rglob("index/*/*.json")).read_text())
    assert index["tensor_payload"][0]["dtype"] == dtype


def test_list_of_uneven_parts_is_refused_with_the_reason(make_hook: MakeHook) -> None:
    with pytest.raises(SMDebugTypeError, match="differ in length"):
        make_hook().save_tensor("t", [[1], [1, 2]])


def test_full_disk_is_reported_with_the_name_of_the_file(
    make_hook: MakeHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook()
    hook._increment_step()

    def be_full(descriptor: int, buffers: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "writev", be_full)
    hook.recorder.save("t", np.ones(30_000))
    monkeypatch.undo()
    assert f"No space left on device: '{tmp_path}/run/events/000000000000/" in said.text
    assert not list(tmp_path.rglob("*.tmp"))


def test_one_collection_may_be_included_by_its_name_alone(make_hook: MakeHook) -> None:
    assert make_hook(include_collections="weights").include_collections == ["weights", "default"]


def test_lists_within_the_list_of_collections_are_joined(make_hook: MakeHook) -> None:
    hook = make_hook(include_collections=[["weights", "gradients"], "biases"])
    assert hook.include_collections == ["weights", "gradients", "biases", "default"]


@pytest.mark.parametrize("wrong", [[["weights", 5]], [5], 5.0])
def test_collections_that_are_not_names_are_refused_when_the_hook_is_made(make_hook: MakeHook, wrong: Any) -> None:
    with pytest.raises((SMDebugTypeError, TypeError)):
        make_hook(include_collections=wrong)


@pytest.mark.parametrize("out_dir", ["s3://", "s3:///run"])
def test_out_dir_without_a_bucket_is_refused(out_dir: str) -> None:
    with pytest.raises(SMDebugRuntimeError, match="names no bucket"):
        PlainHook(out_dir=out_dir)


def test_step_begun_by_hand_where_nothing_can_be_written_ends_no_training(
    make_hook: MakeHook, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    hook = make_hook("file/below")
    hook._increment_step()
    hook.close()
    assert "Not saved: the beginning of a step" in said.text


def test_numbers_that_tensorboard_cannot_hold_are_infinite_there(
    make_hook: MakeHook, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(export_tensorboard=True)
    hook._increment_step()
    hook.save_scalar("large", -1e300)
    hook.recorder.save("t", np.array([1e300, -1e300, 1.0]))
    hook.close()
    (path,) = (tmp_path / "run" / "tensorboard").rglob("*.tfevents")
    shown = FileReader(path).read_events(check="full")
    assert [(each["name"], each["value"]) for each in shown] == [("scalar/large", -np.inf)]
    assert not said.text


SPAWNING = """
import multiprocessing, pathlib, sys
from smdebug.capture.hook import BaseHook
from smdebug.writing.run_writer import Worker

class PlainHook(BaseHook):
    def get_worker(self):
        return Worker("worker_0", is_chief=True, count=1)

hook = PlainHook(out_dir=sys.argv[1])

def prepare():
    pass

if __name__ == "__main__":
    for _ in range(2):
        child = multiprocessing.get_context("spawn").Process(target=prepare)
        child.start()
        child.join()
        print(child.exitcode)
    print(sorted(path.name for path in pathlib.Path(sys.argv[1]).rglob("*")))
"""


@pytest.mark.slow
def test_child_that_only_imports_the_script_ends_no_run(tmp_path: Path) -> None:
    found = build_script_runner(sys.executable, tmp_path)(SPAWNING, str(tmp_path / "run"))
    assert found.stdout.splitlines() == ["0", "0", "[]"], found.stderr
    assert (tmp_path / "run" / END_OF_JOB_FILE).exists()


def test_process_that_only_loads_data_ends_no_run(tmp_path: Path) -> None:
    class LoadingHook(PlainHook):
        def is_main_process(self) -> bool:
            return False

    with closing_hooks(lambda: LoadingHook(out_dir=str(tmp_path / "run"))) as make:
        hook = make()
        hook._increment_step()
        hook.close()
    assert not (tmp_path / "run").exists()


def test_metrics_that_wait_for_a_step_cost_no_more_the_more_they_are(make_hook: MakeHook) -> None:
    hook = make_hook(dry_run=True)
    began = time.process_time()
    for number in range(20_000):
        hook.save_scalar("loss", number, sm_metric=True)
    assert time.process_time() - began < 6


def test_outage_during_a_late_value_leaves_the_step_as_it_was(
    make_hook: MakeHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, *, append: bool = False) -> None:
        raise ObjectStoreError(f"503 {path} {append}")

    hook = make_hook()
    hook._increment_step()
    hook.save_tensor("first", np.ones(4))
    hook.recorder.publish()
    with monkeypatch.context() as patched:
        patched.setattr(step_writer, "open_output", refuse)
        hook.save_tensor("large", np.ones(20_000))
    hook.save_tensor("late", np.ones(4))
    hook._increment_step()
    hook.save_tensor("next", np.ones(4))
    hook.close()
    assert set(read_everything(create_trial(str(tmp_path / "run")))) == {("first", 0), ("next", 1)}


def test_trace_events_need_no_more_than_a_time_and_end_no_training(make_hook: MakeHook) -> None:
    hook = make_hook()
    hook.record_trace_events(1.0)
    hook.tracer = cast("StepTracer", object())
    hook.record_trace_events(1.0, "phase")
    hook.tracer = None
