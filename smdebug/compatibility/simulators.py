"""Simulated SageMaker job environments for tests of training scripts.

`SagemakerSimulator` sets up a job's environment, `ScriptSimulator` an empty folder.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from smdebug.capture.singleton import del_hook
from smdebug.config.json_config import get_json_config_as_dict
from smdebug.environment import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_SAGEMAKER_OUTDIR,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    TRAINING_JOB_NAME_ENV_STR,
)

if TYPE_CHECKING:
    from typing import Self

_VARIABLES = (CONFIG_FILE_PATH_ENV_STR, TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, TRAINING_JOB_NAME_ENV_STR)


class ScriptSimulator:
    """Context in which the folders of a script outside SageMaker are empty; it removes any hook before and after."""

    def __init__(self, out_dir: str = "/tmp/test", tensorboard_dir: str | None = None) -> None:  # noqa: S108
        """Set the folders, which are deleted at the beginning and at the end of the context."""
        self.out_dir = out_dir
        self.tensorboard_dir = tensorboard_dir

    def __enter__(self) -> "Self":
        self._empty()
        del_hook()
        return self

    def __exit__(self, *_exception: object) -> None:
        del_hook()
        self._empty()

    def _empty(self) -> None:
        for folder in (self.out_dir, self.tensorboard_dir):
            if folder:
                shutil.rmtree(folder, ignore_errors=True)


class SagemakerSimulator(ScriptSimulator):
    """Context with the environment of a SageMaker job with a hook config; it removes any hook before and after.

    Attributes:
        out_dir: output folder of the config's hook. It is emptied at the beginning, and at the end unless `cleanup` is
            False.
        json_file_path: the file of the hook config.
        tensorboard_dir: the folder in the TensorBoard config.
    """

    def __init__(
        self,
        json_config_path: str = "/tmp/zcc_config.json",  # noqa: S108 - upstream's default
        tensorboard_dir: str = "/tmp/tensorboard",  # noqa: S108
        training_job_name: str = "sm_job",
        json_file_contents: str = "{}",
        cleanup: bool = True,
    ) -> None:
        """Set the path and the content of the config; nothing is written before the context begins."""
        super().__init__(DEFAULT_SAGEMAKER_OUTDIR, tensorboard_dir)
        self.json_file_path = json_config_path
        self.training_job_name = training_job_name
        self.json_file_contents = json_file_contents
        self.cleanup = cleanup
        self._tensorboard_json_path = f"{json_config_path}.tensorboard.json"
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> "Self":
        self._before = {name: os.environ.get(name) for name in _VARIABLES}
        Path(self.json_file_path).write_text(self.json_file_contents, encoding="utf-8")
        Path(self._tensorboard_json_path).write_text(f'{{"LocalPath": "{self.tensorboard_dir}"}}', encoding="utf-8")
        self.out_dir = get_json_config_as_dict(self.json_file_path).get("LocalPath", DEFAULT_SAGEMAKER_OUTDIR)
        self._empty()
        for name, value in zip(
            _VARIABLES, (self.json_file_path, self._tensorboard_json_path, self.training_job_name), strict=True
        ):
            os.environ[name] = value
        del_hook()
        return self

    def __exit__(self, *_exception: object) -> None:
        del_hook()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for path in (self.json_file_path, self._tensorboard_json_path):
            Path(path).unlink(missing_ok=True)
        if self.cleanup:
            self._empty()
