"""Tests of functions that exist only for code written for smdebug."""

import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.capture.singleton import get_current_hook
from smdebug.compatibility.error_handling_agent import BASE_ERROR_MESSAGE, error_handling_agent
from smdebug.compatibility.loose_names import TimelineFileWriter, _get_proto_dtype
from smdebug.config.collection_manager import CollectionManager
from smdebug.core import (
    access_layer,
    config_validator,
    hook_utils,
    json_config,
    s3_utils,
    sagemaker_utils,
    tfrecord,
    utils,
)
from smdebug.exceptions import SMDebugError, SMDebugNotImplementedError, SMDebugRuntimeError, SMDebugValueError
from smdebug.format.locations import (
    IndexFileLocationUtils,
    TensorboardFileLocation,
    TensorFileLocation,
    TraceFileLocation,
)
from smdebug.format.tfevent.framing import masked_crc32c
from smdebug.mode_keys import ModeKeys
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.runs import RunMaker

# What upstream keeps to itself is for code that already uses it; the types do not show it.
untyped_utils: Any = utils


def test_index_file_locations() -> None:
    key = IndexFileLocationUtils.get_index_key_for_step("/run/", 1234, "worker_0")
    assert key == "/run/index/000000001/000000001234_worker_0.json"
    assert IndexFileLocationUtils.get_prefix_from_index_file(key) == "/run"
    assert IndexFileLocationUtils.parse_step_from_index_file_name(key) == 1234
    assert IndexFileLocationUtils.next_index_prefix_for_step(1234) == "000000002"
    assert IndexFileLocationUtils.get_index_path("/run/") == "/run/index"
    with pytest.raises(ValueError, match="index"):
        IndexFileLocationUtils.get_prefix_from_index_file("/run/events/x")


def test_event_file_locations(tmp_path: Path) -> None:
    location = TensorFileLocation(3, "/job:worker/task:1")
    assert location.get_filename() == "000000000003__job-worker_task-1.tfevents"
    path = location.get_file_location("/run")
    assert path.startswith(TensorFileLocation.get_step_dir_path("/run", 3) + "/")
    for step in (3, 12):
        Path(TensorFileLocation.get_step_dir_path(str(tmp_path), step)).mkdir(parents=True)
    assert TensorFileLocation.get_step_dirs(str(tmp_path)) == ["000000000003", "000000000012"]
    assert path.startswith(TensorFileLocation.get_dir("/run") + "/")
    assert TensorFileLocation.load_filename(path).worker_name == "/job:worker/task:1"
    board = TensorboardFileLocation(3, "worker_0", ModeKeys.EVAL).get_file_location("/board")
    assert board.startswith(f"/board/EVAL/000000000003_{os.getpid()}_")


def test_internals_of_the_profiler_are_not_here() -> None:
    with pytest.raises(SMDebugNotImplementedError, match="profiler"):
        TraceFileLocation("anything")
    with pytest.raises(SMDebugNotImplementedError, match="TimelineFileWriter is not available: the hook of a profiled"):
        TimelineFileWriter("anything")
    with pytest.raises(SMDebugNotImplementedError, match="telemetry"):
        untyped_utils._prepare_telemetry_url("arn")
    assert untyped_utils.setup_profiler_report("arn") is None


def test_record_types() -> None:
    assert _get_proto_dtype(np.dtype("float32")) == (True, "DT_FLOAT")
    assert _get_proto_dtype(np.dtype("uint8")) == (True, "DT_UINT8")
    assert _get_proto_dtype(np.dtype("<U3")) == (False, "DT_STRING")
    with pytest.raises(TypeError, match="datetime64"):
        _get_proto_dtype(np.dtype("datetime64[s]"))


def test_record_files(tmp_path: Path) -> None:
    path = tmp_path / "a" / "records"
    writer = tfrecord.RecordWriter(str(path), write_checksum=True)
    assert writer.write_record(b"one") == (0, 19)
    assert writer.write_record(b"three") == (19, 21)
    writer.flush()
    assert not path.exists()
    writer.close()
    writer.close()
    reader = tfrecord.RecordReader(path)
    assert reader.read_record("full") == b"one"
    with pytest.raises(SMDebugValueError, match="byte 19"):
        reader.read_record()
    assert reader.has_data()
    assert reader.read_record("none") == b"three"
    assert not reader.has_data()
    assert path.read_bytes()[15:19] == struct.pack("<I", masked_crc32c(b"one"))


def test_tensors_of_an_event_file(tmp_path: Path) -> None:
    RunMaker(tmp_path).write_step(4, {"a": np.arange(3)}, ModeKeys.TRAIN, 2)
    (path,) = tmp_path.rglob("*.tfevents")
    ((name, step, value, mode, mode_step),) = tfrecord.TensorReader(path.read_bytes()).read_tensors()
    assert (name, step, mode, mode_step, value.tolist()) == ("a", 4, ModeKeys.TRAIN, 2, [0, 1, 2])


def test_access_file(tmp_path: Path) -> None:
    path = str(tmp_path / "folder" / "file")
    with access_layer.TSAccessFile(path, "w") as file:
        assert file.write("ab") == (0, 2)
        assert file.write(b"c") == (2, 1)
        file.flush()
        assert Path(access_layer.file.get_temp_path(path)).exists()
    with access_layer.TSAccessFile(path, "a+") as file:
        file.write(b"d")
    file = access_layer.TSAccessFile(path, "rb")
    assert file.read() == b"abcd"
    with pytest.raises(SMDebugValueError, match="reading"):
        file.write(b"")
    with pytest.raises(SMDebugValueError, match="'x'"):
        access_layer.TSAccessFile(path, "x")


def test_the_end_of_a_run(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    assert not access_layer.has_training_ended(run)
    access_layer.check_dir_exists(run)
    access_layer.training_has_ended(run)
    assert access_layer.has_training_ended(run)
    with pytest.raises(SMDebugRuntimeError, match="has ended"):
        access_layer.check_dir_exists(run)
    with pytest.raises(RuntimeError, match="out_dir"):
        hook_utils.verify_and_get_out_dir(None)
    assert hook_utils.verify_and_get_out_dir("~/x") == str(Path("~/x").expanduser())


def test_grace_after_a_rule_said_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not access_layer.is_rule_signalled_gracetime_passed(str(tmp_path))
    monkeypatch.setenv(access_layer.ENV_RULE_STOP_SIGNAL_FILENAME, "stop")
    assert not access_layer.is_rule_signalled_gracetime_passed(str(tmp_path))
    (tmp_path / "stop").write_text(str(time.time() - 100))
    assert access_layer.is_rule_signalled_gracetime_passed(str(tmp_path))
    # Weakness 30: the environment's grace is a number too.
    monkeypatch.setenv("rule_stop_grace_time_secs", "1000")
    assert not access_layer.is_rule_signalled_gracetime_passed(str(tmp_path))
    monkeypatch.setenv("rule_stop_grace_time_secs", "soon")
    with pytest.raises(SMDebugValueError, match="number of seconds"):
        access_layer.is_rule_signalled_gracetime_passed(str(tmp_path))


def test_objects_of_s3(storage: Storage) -> None:
    with access_layer.TSAccessS3(BUCKET, "run//a/1") as item:
        item.write(b"0123456789")
    with access_layer.TSAccessS3("another-bucket", "b") as item:
        item.write("made")
    storage.put("run/b/2", b"x")
    handler, request = access_layer.S3Handler, access_layer.ListRequest
    assert handler.list_prefixes([request(BUCKET, "run/"), request("another-bucket")]) == [
        ["run/a/1", "run/b/2"],
        ["b"],
    ]
    assert handler.list_prefix(request(BUCKET, "run/", "/")) == ["run/a/", "run/b/"]
    assert s3_utils.list_s3_objects(BUCKET, "run/", "run/a/1") == (["run/b/2"], "run/b/2")
    assert s3_utils.list_s3_objects(BUCKET, "none/", "z") == ([], "z")
    read = access_layer.ReadObjectRequest
    path = f"s3://{BUCKET}/run/a/1"
    assert handler.get_objects([read(path), read(path, 2, 3), read(path, 8), read(f"{path}0")]) == [
        b"0123456789",
        b"234",
        b"89",
        None,
    ]
    wrong: list[dict[str, Any]] = [{"path": "/a"}, {"path": path, "length": 3}]
    for bad in wrong:
        with pytest.raises(SMDebugValueError):
            read(**bad)
    with pytest.raises(SMDebugValueError, match="everything"):
        access_layer.delete_s3_prefixes(BUCKET, "")
    access_layer.delete_s3_prefixes(BUCKET, ["run/a"])
    assert handler.list_prefix(request(BUCKET)) == ["run/b/2"]
    handler.delete_prefix(f"s3://{BUCKET}/run/b")
    assert handler.list_prefix(request(BUCKET)) == []
    with pytest.raises(SMDebugError, match="no-such-bucket"):
        handler.list_prefix(request("no-such-bucket"))


def test_names_and_folders(tmp_path: Path) -> None:
    assert utils.get_path_to_collections("/run/") == "/run/collections/000000000"
    assert utils.get_worker_name_from_collection_file("x/worker_1_collections.json") == "worker_1"
    assert utils.parse_worker_name_from_file("x/000000000001_worker_1.json") == "worker_1"
    utils.ensure_dir(str(tmp_path / "a" / "file"))
    utils.ensure_dir(str(tmp_path / "b" / "c"), is_file=False)
    assert (tmp_path / "a").is_dir()
    assert (tmp_path / "b" / "c").is_dir()
    utils.remove_file_if_exists(str(tmp_path / "none"))
    assert utils.is_framework_version_supported(utils.FRAMEWORK.PYTORCH)
    arn = "arn:aws:sagemaker:us-west-2:123456789012:processing-job/x"
    assert utils.get_aws_region_from_processing_job_arn(arn) == "us-west-2"
    with pytest.raises(SMDebugValueError, match="ARN"):
        utils.get_aws_region_from_processing_job_arn("x")


def test_the_first_process_of_a_run(tmp_path: Path) -> None:
    assert utils.is_first_process(str(tmp_path))
    assert utils.is_first_process(str(tmp_path / "file"), is_dir=False)
    assert utils.is_first_process("s3://bucket/run")
    child = os.fork()
    if child == 0:
        # Not the claim that it inherited, but one of its own.
        untyped_utils._claims.clear()
        os._exit(1 if utils.is_first_process(str(tmp_path)) else 0)
    assert os.waitpid(child, 0)[1] == 0
    untyped_utils._claims.pop(str(tmp_path)).release()


def test_simulators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINING_JOB_NAME", raising=False)
    out = tmp_path / "out"
    contents = f'{{"LocalPath": "{out}"}}'
    config, board = str(tmp_path / "c.json"), str(tmp_path / "board")
    with utils.SagemakerSimulator(
        json_config_path=config, tensorboard_dir=board, json_file_contents=contents
    ) as simulated:
        assert sagemaker_utils.is_sagemaker_job()
        assert simulated.out_dir == str(out)
        arguments = json_config.collect_hook_config_params(json_config.get_json_config_as_dict(None))
        assert (arguments["out_dir"], arguments["tensorboard_dir"]) == (str(out), board)
        out.mkdir()
    assert not sagemaker_utils.is_sagemaker_job()
    assert not out.exists()
    assert not (tmp_path / "c.json").exists()
    out.mkdir()
    with utils.ScriptSimulator(str(out)):
        assert not out.exists()
        out.mkdir()
    assert not out.exists()
    assert get_current_hook() is None


def test_errors_end_at_the_agent(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    assert error_handling_agent.catch_smdebug_errors(default_return_val=7)(fail)() == 7
    assert error_handling_agent.catch_smdebug_errors(return_type=list)(fail)() == []
    assert error_handling_agent.catch_smdebug_errors()(lambda: 3)() == 3
    assert BASE_ERROR_MESSAGE


def test_config_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USE_SMDEBUG", raising=False)
    validator = config_validator.get_config_validator("pytorch")
    assert validator is config_validator.get_config_validator()
    assert validator.validate_training_job()
    monkeypatch.setenv("USE_SMDEBUG", "off")
    assert not validator.validate_training_job()
    config_validator.reset_config_validator()
    assert config_validator.get_config_validator() is not validator
    config_validator.reset_config_validator()


def test_node_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_config, "DEFAULT_RESOURCE_CONFIG_FILE", str(tmp_path / "resourceconfig.json"))
    assert json_config.get_node_id_from_resource_config() is None
    (tmp_path / "resourceconfig.json").write_text('{"current_host": "algo-1"}')
    assert json_config.get_node_id_from_resource_config() == "algo-1"


def test_collections_are_configured_as_the_hooks_parameters_say() -> None:
    config = {
        "HookParameters": {"save_interval": "7", "eval.end_step": "3"},
        "CollectionConfigurations": [{"CollectionName": "mine", "CollectionParameters": {"include_regex": "relu"}}],
    }
    manager = CollectionManager()
    json_config.add_collections_to_manager(manager, config, json_config.collect_hook_config_params(config))
    mine = manager.get("mine", create=False)
    assert mine.include_regex == ["relu"]
    assert mine.save_config is not None
    assert mine.save_config.get_save_config(ModeKeys.TRAIN).save_interval == 7
    assert mine.save_config.get_save_config(ModeKeys.EVAL).end_step == 3
