"""Tests of bad input: clear errors or fallbacks, and no loss of written data.

The mistakes are those of users, configs, disks and S3.
"""

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.storage import output
from smdebug.storage.outage import ObjectStoreError, Outage
from smdebug.trials import create_trial
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


@pytest.fixture
def from_config(tmp_path: Path) -> Iterator[Any]:
    hooks = []

    def make(parameters: Any = None, collections: Any = None, **more: Any) -> Any:
        config = {"LocalPath": str(tmp_path / "run"), "HookParameters": parameters, **more}
        if collections is not None:
            config["CollectionConfigurations"] = collections
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        hooks.append(smd.Hook.create_from_json_file(str(path)))
        return hooks[-1]

    yield make
    for hook in hooks:
        hook.close()
    smd.del_hook()


# Configuration.


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"save_intervall": "3"},
            "HookParameters: 'save_intervall' is unknown and is ignored. Did you mean save_int",
        ),
        ({"training.save_interval": "3"}, "Did you mean train.save_interval?"),
        ({"zzz": 1}, "Known: dry_run, end_step"),
        ({"save_shape": True}, "save_shape is read only together with reductions"),
    ],
)
def test_an_unknown_key_is_named_with_the_one_that_was_meant(
    parameters: Any, text: str, from_config: Any, said: pytest.LogCaptureFixture
) -> None:
    from_config(parameters)
    assert any(text in record.message for record in said.records)


def test_unknown_keys_elsewhere(from_config: Any, said: pytest.LogCaptureFixture) -> None:
    entry = {"CollectionName": "cc", "CollectionParameters": {"include_regexp": "a"}, "Colour": 1}
    from_config({}, [entry], LocalPaht="x")
    messages = "\n".join(record.message for record in said.records)
    assert "'LocalPaht' is unknown and is ignored. Did you mean LocalPath?" in messages
    assert "CollectionParameters of cc: 'include_regexp' is unknown and is ignored. Did you mean incl" in messages
    assert "CollectionConfigurations: 'Colour' is unknown" in messages


def test_known_keys_are_not_remarked_upon(from_config: Any, said: pytest.LogCaptureFixture) -> None:
    every_mode = {f"{mode}.save_interval": "3" for mode in ("train", "eval", "predict", "global")}
    hook = from_config(
        {**every_mode, "save_steps": "1,2", "start_step": "0", "end_step": "9", "reductions": "min,abs_l1_norm"}
        | {"save_raw_tensor": True, "save_all": "true", "include_regex": "a", "include_workers": "all"}
        | {"export_tensorboard": "false", "dry_run": "true"},
        [{"CollectionName": "weights", "CollectionParameters": {"eval.save_steps": "7", "save_histogram": "false"}}],
        S3OutputPath="s3://bucket/key",
    )
    assert [record for record in said.records if record.levelno >= logging.WARNING] == []
    assert hook.dry_run
    assert hook.get_collection("weights").save_config.get_save_config(smd.modes.EVAL).save_steps == [7]


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"save_interval": "x"}, "save_interval: 'x' is not a whole number"),
        ({"eval.start_step": "1.5"}, "eval.start_step: '1.5' is not a whole number"),
        ({"save_interval": float("inf")}, "save_interval: inf is not a whole number"),
        ({"save_interval": "0"}, "save_interval 0 selects no step"),
        ({"save_steps": "1,x"}, "save_steps: 'x' is not a whole number"),
        ({"save_steps": ["1"]}, "must be a list of integers"),
        ({"reductions": "median"}, "'median', which is none of min, max"),
        ({"reductions": "median"}, "prod, l1_norm, l2_norm, nor one of these with the prefix abs_."),
        ({"reductions": "l1"}, "Write it l1_norm"),
        ({"reductions": "min,abs_l2"}, "holds 'abs_l2', which"),
        ({"reductions": ["min"]}, "reductions is a text"),
        ({"reductions": "min", "save_shape": "true"}, "save_shape must be True or False"),
        ({"save_all": "maybe"}, "save_all: 'maybe' is neither true nor false"),
        ({"include_regex": "a("}, "'a(' is not a regex"),
        ({"include_regex": ["a"]}, "include_regex is a text"),
        ([1], "HookParameters must be a JSON object"),
    ],
)
def test_bad_values_are_refused_by_name(parameters: Any, text: str, from_config: Any) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared below
        from_config(parameters)
    assert text in str(raised.value)


@pytest.mark.parametrize("collections", ["x", [1], [{"CollectionName": 3}], [{}]])
def test_bad_collections_are_refused(collections: Any, from_config: Any) -> None:
    with pytest.raises(SMDebugValueError, match="CollectionConfigurations"):
        from_config({}, collections)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"save_config": 3}, SMDebugTypeError),
        ({"save_config": {"TRAINING": {}}}, KeyError),
        ({"save_config": {"TRAIN": 3}}, SMDebugTypeError),
        ({"reduction_config": "min"}, SMDebugTypeError),
        ({"include_regex": "["}, SMDebugValueError),
    ],
)
def test_bad_arguments_of_a_hook(arguments: Any, error: Any, make_hook: MakeHook) -> None:
    with pytest.raises(error):
        make_hook(**arguments)


def test_only_a_hook_is_the_hook_of_a_process(make_hook: MakeHook) -> None:
    hook = make_hook()
    wrong: Any = None
    with pytest.raises(SMDebugTypeError, match="del_hook"):
        smd.set_hook(wrong)
    assert smd.get_hook() is hook


def test_unknown_modes_and_reductions(make_hook: MakeHook) -> None:
    hook = make_hook()
    for mode in ("train", None, 1):
        with pytest.raises(SMDebugValueError, match=r"modes\.TRAIN"):
            hook.set_mode(mode)
    with pytest.raises(SMDebugValueError, match="median"):
        smd.ReductionConfig(["median"])


def test_a_config_that_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(json.JSONDecodeError):
        smd.Hook.create_from_json_file(str(tmp_path / "c.json"))


# Tensors.


@pytest.mark.parametrize("name", [float("nan"), None, 3, "", b"a"])
def test_invalid_names(name: Any, make_hook: MakeHook) -> None:
    hook = make_hook()
    with pytest.raises(SMDebugTypeError, match="name"):
        hook.save_scalar(name, 1)
    with pytest.raises(SMDebugTypeError, match="name"):
        hook.save_tensor(name, np.ones(1))


@pytest.mark.parametrize("name", ["NaN", "a b/c:0", "é", "../../up", "x" * 5000, '"quoted"\\'])
def test_odd_names_are_names(name: Any, make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    hook.save_tensor(name, np.ones(2))
    training.step()
    assert run.values(0)[name].tolist() == [1, 1]
    assert not (run.path.parent.parent / "up").exists()


def test_a_timestamp_that_is_not_a_time(make_hook: MakeHook) -> None:
    timestamp: Any = "yesterday"
    with pytest.raises(SMDebugTypeError, match="timestamp"):
        make_hook().save_scalar("a", 1, timestamp=timestamp)


SAVED: dict[str, Any] = {
    "float16": np.array([1.5], "float16"),
    "complex64": np.array([1 + 2j], "complex64"),
    "bool": np.array([True, False]),
    "scalar": np.float32(2.5),
    "zero_dimensional": np.array(3.5),
    "text": ["a", "b"],
    "texts_as_objects": np.array(["a", "b"], dtype=object),
    "big_endian": np.array([1, 2], ">i4"),
    "int8": np.array([-1], "int8"),
    "bfloat16": torch.tensor([1.5, 2.5], dtype=torch.bfloat16),
    "sparse": torch.eye(2).to_sparse(),
    "requires_grad": torch.ones(2, requires_grad=True) * 2,
    "nan": np.array([np.nan, np.inf]),
}


@pytest.mark.parametrize("kind", SAVED)
def test_odd_tensors_that_are_saved(kind: str, make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    value = SAVED[kind]
    hook = make_hook()
    hook.register_module(training.model)
    hook.save_tensor("t", value)
    training.step()
    hook.close()
    found = create_trial(str(run.path)).tensor("t").value(0)
    if isinstance(value, torch.Tensor):
        value = value.detach().to_dense().float().numpy()
    np.testing.assert_array_equal(found, np.atleast_1d(value) if kind == "scalar" else np.asarray(value))


LOST = {
    "objects": np.array([None, {}], dtype=object),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "bytes": np.array([b"a"]),
    "structured": np.zeros(2, [("a", "i4"), ("b", "f4")]),
}


@pytest.mark.parametrize("kind", LOST)
def test_odd_tensors_that_cannot_be_saved_cost_themselves_only(
    kind: str, make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    hook.save_tensor("bad", LOST[kind])
    hook.save_tensor("good", np.ones(1))
    training.step()
    assert set(run.values(0)) == {"good", "Net_fc1.weight", "Net_fc2.weight"}
    assert any("Not saved: tensor bad" in record.message for record in said.records)


@pytest.mark.parametrize("value", [object(), None, {"a": 1}])
def test_what_is_not_a_tensor_at_all_is_refused(value: Any, make_hook: MakeHook) -> None:
    with pytest.raises(SMDebugTypeError, match="cannot be saved"):
        make_hook().save_tensor("a", value)


def test_an_empty_tensor_is_left_out(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    hook.save_tensor("empty", np.zeros((0, 3)))
    hook.save_tensor("empty_too", torch.zeros(0))
    hook.save_tensor("good", np.ones(1))
    training.step()
    assert set(run.values(0)) == {"good"}
    assert run.index(0)["shape_payload"] == []


def test_a_scalar_of_several_numbers_is_refused(make_hook: MakeHook) -> None:
    for value in ([1, 2], [], np.zeros((2, 2))):
        with pytest.raises(SMDebugTypeError, match="one number"):
            make_hook().save_scalar("a", value)


# Disks.


def test_an_out_dir_that_cannot_be_made(tmp_path: Path, training: Training, said: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    hook = smd.Hook(out_dir=str(tmp_path / "file" / "run"), save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(2)
    hook.close()
    smd.del_hook()
    assert any("NotADirectoryError" in record.message for record in said.records)


# S3.


class Refusing(BaseHTTPRequestHandler):
    status = 503

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = _answer  # noqa: N815 - names of the base

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    # Attempts with pauses between them would take a test's time.
    monkeypatch.setattr(output, "_ATTEMPTS", 1)
    output._get_s3_client.cache_clear()
    output._get_outage.cache_clear()
    yield server
    output._get_s3_client.cache_clear()
    output._get_outage.cache_clear()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("status", [500, 503, 403])
def test_an_s3_that_refuses_costs_what_it_refuses(
    status: int, refusing: Any, training: Training, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refusing, "status", status)
    hook = smd.Hook(out_dir="s3://bucket/run", save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(2)
    hook.close()
    smd.del_hook()
    messages = [record.message for record in said.records]
    assert any("is not known" in message for message in messages)
    assert any("Not saved" in message and "s3://bucket/run" in message for message in messages)


class Hanging(Refusing):
    """Answers nothing until it is let go."""

    asked = 0
    let_go = threading.Event()

    def _answer(self) -> None:
        type(self).asked += 1
        self.let_go.wait(60)
        super()._answer()

    do_GET = do_PUT = do_HEAD = do_POST = _answer  # noqa: N815 - names of the base


@pytest.mark.slow
def test_an_s3_that_hangs_holds_up_a_training_once(
    refusing: Any, training: Training, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing.RequestHandlerClass = Hanging
    monkeypatch.setattr(output, "_ANSWER_SECONDS", 1.5)
    # Only what hangs takes time, a second each: however long the steps take, the pause after it is not over.
    monkeypatch.setattr(output, "Outage", lambda: Outage(lambda: float(Hanging.asked)))
    hook = smd.Hook(out_dir="s3://bucket/run", save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(30)
    # Whether the run has ended was asked when the hook was made; after that no step of the pause asks.
    assert Hanging.asked == 1
    hook.close()
    smd.del_hook()
    # The end of the run is the last chance for it, and is tried.
    assert Hanging.asked == 2
    Hanging.let_go.set()
    messages = [record.message for record in said.records]
    assert len([message for message in messages if "Not saved" in message]) <= 2
    assert any("next attempt" in message for message in messages)


def test_a_missing_bucket_is_made(storage: Storage, training: Training) -> None:
    hook = smd.Hook(out_dir="s3://made-by-the-hook//run", save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step()
    hook.close()
    smd.del_hook()
    assert create_trial("s3://made-by-the-hook/run").steps() == [0]


def test_a_refusal_loses_nothing_that_was_there(
    storage: Storage, training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = smd.Hook(out_dir=f"s3://{BUCKET}/run", save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step()

    def refuse(self: output.S3Output) -> None:
        raise ObjectStoreError("503")

    with monkeypatch.context() as patched:
        patched.setattr(output.S3Output, "_put", refuse)
        training.step()
        hook.save_scalar("lost", 1)
        hook.recorder.end()
    training.step()
    hook.close()
    smd.del_hook()
    trial = create_trial(f"s3://{BUCKET}/run")
    assert trial.steps() == [0, 2]
    for step in (0, 2):
        assert np.isfinite(trial.tensor("CrossEntropyLoss_output_0").value(step))
