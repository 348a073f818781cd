"""Tests of smdebug 1.0.34's writing defects, one each, by our list's numbers."""

import json
import threading
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.capture.state_store import StateStore
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.storage.output import open_output
from smdebug.trials import create_trial
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


def test_5_what_comes_late_is_added_to_the_finished_step(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    before = run.values(0)
    hook.save_scalar("late", 1)
    hook.close()
    after = run.values(0)
    assert set(after) == {*before, "scalar/late"}
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


def test_5_a_failure_to_add_to_a_step_leaves_it_as_it_was(
    make_hook: MakeHook, training: Training, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    before = run.values(0)
    from smdebug.writing import step_writer

    def fail(*_arguments: Any, **_named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step_writer, "open_output", fail)
    for _ in range(2):
        hook.save_scalar("late", 1)
        hook.recorder.end()
    monkeypatch.setattr(step_writer, "open_output", open_output)
    # There is room again, and half of the step's tensors in memory no more: it must not be written anew.
    hook.save_scalar("later", 1)
    hook.close()
    assert set(run.values(0)) == set(before)


def test_9_a_scalar_after_the_mode_changed_keeps_the_mode_of_its_step(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    hook.set_mode(smd.modes.TRAIN)
    training.step()
    hook.set_mode(smd.modes.EVAL)
    hook.save_scalar("accuracy", 0.5, timestamp=1.0)
    hook.close()
    assert run.index(0)["meta"]["mode"] == "TRAIN"
    from smdebug.reading.reader import FileReader

    (path,) = run.path.rglob("*.tfevents")
    records = {name: (mode, step) for name, _, _, mode, step in FileReader(path).read_tensors()}
    assert set(records.values()) == {(smd.modes.TRAIN, 0)}
    assert "scalar/accuracy" in records


def test_10_the_constructor_says_what_is_wrong(run: WrittenRun) -> None:
    with pytest.raises(SMDebugRuntimeError, match="needs out_dir"):
        smd.Hook(out_dir=None)
    run.path.mkdir()
    (run.path / "training_job_end.ts").touch()
    with pytest.raises(SMDebugRuntimeError, match="has ended"):
        smd.Hook(out_dir=str(run.path))
    (run.path / "file").touch()
    with pytest.raises(SMDebugRuntimeError, match="is a file"):
        smd.Hook(out_dir=str(run.path / "file"))


def test_11_a_scalar_before_the_first_step_and_then_close_ends(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook()
    hook.save_scalar("early", 3)
    closing = threading.Thread(target=hook.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    assert run.values(0)["scalar/early"].tolist() == [3]


def test_13_save_tensor_loses_nothing_and_says_what_is_not_due(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=2), reduction_config=smd.ReductionConfig(["max"]))
    hook.register_module(training.model)
    training.step()
    hook.save_tensor("a", np.array([1.0, 4.0]), ["one", "two"])
    training.step()
    hook.save_tensor("a", np.array([1.0, 5.0]), ["one", "two"])
    training.step()
    hook.save_tensor("last", np.array([6.0]), "one")
    hook.close()
    assert any(record.message.startswith("a is not saved at step 1") for record in said.records)
    # Under a config of reductions alone these are saved, and what came after the last step with that step.
    assert run.values(2)["smdebug/reductions/max/a"] == 5.0
    assert run.values(2)["smdebug/reductions/max/last"] == 6.0
    collections = run.collections()["collections"]
    assert "a" in collections["one"]["tensor_names"]
    assert "a" in collections["two"]["tensor_names"]


def test_14_save_tensor_into_a_collection_that_was_not_there_before(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    training.step(2)
    hook.save_tensor("a", np.ones(2), "brand_new")
    training.step()
    assert run.values(2)["a"].tolist() == [1, 1]


def test_15_bfloat16_models_are_saved(make_hook: MakeHook, run: WrittenRun) -> None:
    model = torch.nn.Linear(2, 2, bias=False).to(torch.bfloat16)
    hook = make_hook(save_all=True)
    hook.register_module(model)
    model(torch.ones(1, 2, dtype=torch.bfloat16)).sum().backward()
    hook.close()
    weight = run.values(0)["Linear_weight"]
    np.testing.assert_array_equal(weight, model.weight.detach().float().numpy())
    entries = {entry["tensorname"]: entry for entry in run.index(0)["tensor_payload"]}
    assert entries["Linear_weight"]["dtype"] == "bfloat16"


def test_16_integers_have_means(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(save_all=True, reduction_config=smd.ReductionConfig(["mean", "std", "variance"], norms=["l2"]))
    hook.register_loss(training.loss)
    hook.register_module(training.model)
    training.step()
    assert "smdebug/reductions/mean/CrossEntropyLoss_input_1" in run.values(0)


def test_18_modes_that_a_save_config_leaves_out_have_the_defaults(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    only_train = smd.SaveConfig({smd.modes.TRAIN: smd.SaveConfigMode(save_interval=1)})
    hook = make_hook(save_config=only_train, include_collections=["weights"])
    hook.register_module(training.model)
    for mode in (smd.modes.TRAIN, smd.modes.EVAL):
        hook.set_mode(mode)
        training.step(2)
    hook.close()
    trial = create_trial(str(run.path))
    assert trial.steps(smd.modes.TRAIN) == [0, 1]
    assert trial.steps(smd.modes.EVAL) == [0]


def test_19_a_claim_that_a_killed_job_left_stops_nobody(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    run.path.mkdir()
    (run.path / "claim.smd").touch()
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    assert run.steps == [0]
    hook.close()
    assert not (run.path / "claim.smd").exists()


def test_20_an_error_turns_nothing_off(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    # The default configuration, registered twice: upstream gives up here.
    hook = make_hook()
    hook.register_module(training.model)
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step()
    no_tensor: Any = object()
    hook.record_tensor_value("bad_loss", no_tensor)
    training.step()
    assert run.steps == [0, 1]
    assert smd.get_hook() is hook


def test_22_a_finished_run_on_s3_is_seen(storage: Storage) -> None:
    hook = smd.Hook(out_dir=f"s3://{BUCKET}/run")
    hook.close()
    assert storage.client.list_objects_v2(Bucket=BUCKET, Prefix="run/training_job_end.ts")["KeyCount"] == 1
    with pytest.raises(SMDebugRuntimeError, match="has ended"):
        smd.Hook(out_dir=f"s3://{BUCKET}/run")
    smd.del_hook()


def test_23_the_end_is_written_by_the_last_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smdebug.writing.run_writer import RunWriter, Worker

    runs = [RunWriter(str(tmp_path), all_workers=True, dry_run=False) for _ in range(2)]
    for rank, writer in enumerate(runs):
        writer.start(Worker(f"worker_{rank}", rank == 0, 2))
    runs[1].end()
    assert not (tmp_path / "training_job_end.ts").exists()
    runs[0].end()
    assert (tmp_path / "training_job_end.ts").exists()


@pytest.mark.parametrize("place", ["folder", "s3"])
def test_23_the_end_is_not_that_of_a_killed_run(place: str, tmp_path: Path, storage: Storage) -> None:
    from smdebug.storage.output import path_exists
    from smdebug.writing.run_writer import RunWriter, Worker

    root = str(tmp_path) if place == "folder" else f"s3://{BUCKET}/ended-again"

    def start() -> list[RunWriter]:
        runs = [RunWriter(root, all_workers=True, dry_run=False) for _ in range(2)]
        for rank, writer in enumerate(runs):
            writer.start(Worker(f"worker_{rank}", rank == 0, 2))
        return runs

    start()[1].end()  # the other worker was killed
    runs = start()
    runs[0].end()
    assert not path_exists(f"{root}/training_job_end.ts")
    runs[1].end()
    assert path_exists(f"{root}/training_job_end.ts")


def test_24_the_end_in_sagemaker_is_the_services_to_write(
    make_hook: MakeHook, training: Training, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Upstream's behaviour, kept: only the service knows when the last file of all hosts is uploaded.
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    hook.close()
    assert run.steps == [0]
    assert not run.has_ended
    assert sorted(path.name for path in run.path.iterdir()) == ["collections", "events", "index"]


def test_25_the_newest_step_is_there_when_it_is_complete(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    training.step()
    assert run.steps == [0]
    assert run.temp_files == []
    assert any(name.startswith("gradient/") for name in run.values(0))


def test_26_the_state_beside_checkpoints_is_whole_or_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "checkpointconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "checkpoints")}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    # The folder comes with the first checkpoint, and its files go while they are looked at.
    store = StateStore()
    assert not store.is_checkpoint_updated()
    folder = tmp_path / "checkpoints" / "inner"
    folder.mkdir(parents=True)
    (folder / "vanishing").symlink_to(folder / "nowhere")
    (folder / "model.pt").write_bytes(b"1")
    assert store.is_checkpoint_updated()
    state = {"training-run": 0, "latest-global-step-saved": 4, "latest-global-step-seen": 5, "latest-mode-step": {}}
    store.update_state(state)
    assert [path.name for path in (tmp_path / "checkpoints").glob("metadata*")] == ["metadata.json"]
    assert StateStore().get_last_saved_state() == state
    for damaged in ("", "{", "{}", '[{"latest-global-step-seen": "x"}]', "[1, null]"):
        (tmp_path / "checkpoints" / "metadata.json").write_text(damaged)
        assert StateStore().get_last_saved_state() is None
    assert any("metadata.json" in record.message for record in said.records)


def test_33_and_35_todays_numpy_and_python_write(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    assert int(np.__version__.split(".")[0]) >= 2
    hook = make_hook(save_all=True)
    hook.register_module(training.model)
    training.step()
    assert run.values(0)


def test_the_bucket_of_a_run_is_made_where_the_client_is(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    from smdebug.storage import output

    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    output._get_s3_client.cache_clear()
    hook = smd.Hook(out_dir="s3://not-there-yet/run")
    hook.close()
    smd.del_hook()
    place = boto3.client("s3").get_bucket_location(Bucket="not-there-yet")["LocationConstraint"]
    assert place == "eu-west-1"
