"""Tests of path objects: pathlib's, and others with `__fspath__`.

They are accepted wherever a path may be text.
"""

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from smdebug.capture.singleton import del_hook
from smdebug.config.collection_manager import CollectionManager
from smdebug.core.access_layer.utils import has_training_ended, training_has_ended
from smdebug.core.utils import get_path_to_collections, is_first_process, is_s3
from smdebug.exceptions import SMDebugTypeError
from smdebug.trials import LocalTrial
from smdebug.writing.file_writer import FileWriter
from smdebug.writing.run_writer import check_out_dir


class OtherPath:
    """A path as py.path has them: text is all that it gives."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


KINDS: list[Callable[[Path], os.PathLike[str]]] = [Path, OtherPath]
HOOKS = ["pytorch.Hook", "xgboost.Hook"]  # of TensorFlow: tensorflow/test_names.py


def check_hook(name: str, kind: Callable[[Path], os.PathLike[str]], tmp_path: Path) -> None:
    framework, _, class_name = name.partition(".")
    make_hook: Any = getattr(import_module(f"smdebug.{framework}"), class_name)
    hook = make_hook(out_dir=kind(tmp_path / "run"), tensorboard_dir=kind(tmp_path / "board"))
    assert (hook.out_dir, hook.tensorboard_dir) == (str(tmp_path / "run"), str(tmp_path / "board"))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "configured")}))
    configured = make_hook.create_from_json_file(kind(config))
    assert configured.out_dir == str(tmp_path / "configured")
    hook.close()
    configured.close()
    del_hook()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOOKS)
def test_hooks_and_their_configurations(name: str, kind: Callable[[Path], os.PathLike[str]], tmp_path: Path) -> None:
    check_hook(name, kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_written_and_read(kind: Callable[[Path], os.PathLike[str]], tmp_path: Path) -> None:
    path = kind(tmp_path)
    CollectionManager(create_default=True).export(path, "worker_0_collections.json")
    with FileWriter(path, "worker_0", 0) as writer:
        writer.write_tensor([1.0, 2.0], "x")
    assert not has_training_ended(path)
    training_has_ended(path)
    assert has_training_ended(path)
    file = tmp_path / "collections" / "000000000" / "worker_0_collections.json"
    assert list(CollectionManager.load(kind(file)).collections) == ["default"]
    assert LocalTrial(None, path).tensor("x").value(0).tolist() == [1.0, 2.0]
    assert get_path_to_collections(path) == str(file.parent)
    assert is_first_process(path)
    assert not is_s3(path)[0]


def test_a_path_of_pathlib_on_s3_gets_its_slash_back() -> None:
    assert is_s3(Path("s3://bucket/runs/1")) == (True, "bucket", "runs/1")
    assert is_s3("s3:/bucket/runs") == (False, "", "")


@pytest.mark.parametrize("path", [3, b"run", ["run"]])
def test_what_is_not_a_path(path: Any) -> None:
    with pytest.raises(SMDebugTypeError, match="a text or a path object"):
        check_out_dir(path)
