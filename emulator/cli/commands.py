"""The ``smdebug-emulator`` command and the list of its commands."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where each command is: its module, and its name there if that is another.
_PLACES = {
    "check": "check",
    "completion": "shell_completion",
    "demo": "other_programs",
    "describe": "jobs",
    "doctor": "doctor",
    "engine": "engine",
    "env": "clients",
    "events": "events",
    "export": "job_files.export_job",
    "images": "images",
    "import": "job_files.import_job",
    "interrupt": "interrupt",
    "jobs": "jobs",
    "logs": "jobs",
    "open": "job_files.open_console",
    "plot": "other_programs",
    "profile": "other_programs",
    "prune": "state",
    "report": "job_files",
    "reset": "state",
    "rules": "other_programs",
    "run": "clients",
    "start": "service",
    "state": "state",
    "status": "service",
    "stop": "service",
    "stop-handler": "stop_handler",
    "stop-job": "jobs",
    "tensorboard": "tensorboard",
    "tensors": "other_programs",
}


class _Commands(UserDict[str, click.Command]):
    """The commands by name, each imported when it is looked up: all together take longer to import than most to run."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in self.data:
            module, _, attribute = _PLACES[name].partition(".")
            self.data[name] = getattr(import_module(f"emulator.cli.{module}"), attribute or name.replace("-", "_"))
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in _PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


@click.group(commands=_Commands(), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="smdebug-emulator", prog_name="smdebug-emulator")
def main() -> None:
    """SageMaker Debugger on this machine: training jobs run, tensors are saved, rules judge them, events stop jobs.

    \b
    Terminal 1:  smdebug-emulator start
    Terminal 2:  eval "$(smdebug-emulator env)"
                 aws s3 mb s3://my-bucket
                 aws sagemaker create-training-job --cli-input-json file://job.json

    Every AWS client in terminal 2 now talks to the emulator; no account and no network is needed.

    Exit codes: 0 success, 1 failure (or no emulator is running), 2 invalid command line, 3 no such job, or more than
    one matches. run and rules run exit with the code of the program they run.
    """  # noqa: D301 - click wants the character itself
