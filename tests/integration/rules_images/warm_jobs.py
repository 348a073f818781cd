"""Containers that run a script in a fork, or in a new interpreter."""

import json
from dataclasses import dataclass
from pathlib import Path

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions
from container_runtime.spec import ContainerSpec, Mount
from tests.waiting import wait_until

COLLECTIONS = {"pytorch-training": "losses", "tensorflow-training": "losses", "sagemaker-xgboost": "metrics"}


@dataclass(frozen=True)
class Ended:
    """What a job has left.

    Attributes:
        log: the lines that it printed.
        code: the container's exit code.
        base: the folder of its /opt/ml.
    """

    log: list[str]
    code: int
    base: Path

    @property
    def tensors(self) -> Path:
        """The folder of the saved tensors."""
        return self.base / "output" / "tensors"

    def list_saved(self) -> list[str]:
        """List the files of the saved tensors."""
        return sorted(str(path.relative_to(self.tensors)) for path in self.tensors.rglob("*") if path.is_file())


class Jobs:
    """Containers of one image."""

    def __init__(self, folder: Path, image: str, warm: WarmOptions | None) -> None:
        self._folder = folder
        self._image = image
        self._count = 0
        self.runtime = LocalProcesses(folder / "containers", warm=warm)
        if warm is not None:
            interpreter = self.runtime._warm._interpreters[image]
            wait_until(lambda: interpreter.is_ready, lambda: interpreter.has_ended and interpreter.describe_end())

    def run(self, script: str, *arguments: str, files: dict[str, str] | None = None) -> Ended:
        """Run a script with hyperparameters, as ``--name`` or ``--name=value``, and more files beside it."""
        self._count += 1
        base = self._folder / str(self._count)
        for name in ("input/config", "code", "output/data", "model"):
            (base / name).mkdir(parents=True)
        for name, text in {"train.py": script, **(files or {})}.items():
            (base / "code" / name).write_text(text)
        config = base / "input" / "config"
        hyperparameters = {"sagemaker_program": "train.py", "sagemaker_submit_directory": "/opt/ml/code"}
        for each in arguments:
            name, _, value = each.removeprefix("--").partition("=")
            hyperparameters[name] = value or "1"
        (config / "hyperparameters.json").write_text(json.dumps({k: json.dumps(v) for k, v in hyperparameters.items()}))
        resources = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
        (config / "resourceconfig.json").write_text(json.dumps(resources))
        (config / "inputdataconfig.json").write_text("{}")
        if self._image in COLLECTIONS:
            hook = {
                "S3OutputPath": "s3://bucket",
                "LocalPath": "/opt/ml/output/tensors",
                "CollectionConfigurations": [
                    {"CollectionName": COLLECTIONS[self._image], "CollectionParameters": {"save_interval": "1"}}
                ],
            }
            (config / "debughookconfig.json").write_text(json.dumps(hook))
        spec = ContainerSpec(
            "job", self._image, ("train",), mounts=(Mount(base, "/opt/ml"),), environment={"A": "1"}, niceness=2
        )
        container = self.runtime.start(spec)
        lines = [line.text for line in self.runtime.logs(container)]
        ended = self.runtime.wait(container)
        assert ended is not None
        self.runtime.remove(container)
        return Ended(lines, ended.code, base)
