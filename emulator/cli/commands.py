"""The ``smdebug-emulator`` command and the list of its commands."""

from collections import UserDict
from collections.abc import Iterator
from importlib import import_module

import click

# The commands by the headings of `--help`: the module of each, and its name there if that is another.
_GROUPS = {
    "Service": {
        "start": "service.start_stop",
        "stop": "service.start_stop",
        "status": "service.status",
        "env": "service.clients",
        "run": "service.clients",
        "demo": "jobs.other_programs",
    },
    "Jobs": {
        "jobs": "jobs.jobs",
        "describe": "jobs.jobs",
        "processing": "jobs.other_kinds",
        "tuning": "jobs.other_kinds",
        "pipelines": "jobs.other_kinds",
        "logs": "jobs.logs",
        "tensors": "jobs.other_programs",
        "plot": "jobs.other_programs",
        "profile": "jobs.other_programs",
        "rules": "jobs.other_programs",
        "tensorboard": "jobs.tensorboard",
        "open": "jobs.job_files:open_console",
        "report": "jobs.job_files",
        "export": "jobs.job_files:export_job",
        "import": "jobs.job_files:import_job",
        "stop-job": "jobs.jobs",
        "interrupt": "jobs.jobs",
    },
    "Data": {
        "events": "data.events",
        "reset": "data.state",
        "prune": "data.state",
        "state": "data.state",
        "check": "data.check",
    },
    "Images": {
        "images": "images.images",
        "engine": "images.engine",
        "cache": "images.stored",
    },
    "Tools": {
        "doctor": "tools.doctor",
        "stop-handler": "tools.stop_handler",
        "completion": "tools.shell_completion",
    },
}
_MODULES = {name: module for group in _GROUPS.values() for name, module in group.items()}
_WIDTH = 80


class _Commands(UserDict[str, click.Command]):
    """The commands by name, each imported when it is looked up: all together take longer to import than most to run."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in self.data:
            module, _, attribute = _MODULES[name].partition(":")
            self.data[name] = getattr(import_module(f"emulator.cli.{module}"), attribute or name.replace("-", "_"))
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _GroupedCommands(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's
        width = max(map(len, self.commands))
        for heading, names in _GROUPS.items():
            with formatter.section(heading):
                helps = [(name, self.commands[name].get_short_help_str(formatter.width - 6 - width)) for name in names]
                formatter.write_dl([(name.ljust(width), text) for name, text in helps])


@click.group(
    cls=_GroupedCommands,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH},
)
@click.version_option(package_name="smdebug-emulator", prog_name="smdebug-emulator")
def main() -> None:
    """Emulate SageMaker Debugger on this machine.

    Training jobs run, save tensors, and are judged by rules; events stop them.

    \b
    Terminal 1: smdebug-emulator start
    Terminal 2: eval "$(smdebug-emulator env)"
                aws s3 mb s3://my-bucket
                aws sagemaker create-training-job --cli-input-json file://job.json

    Every AWS client in terminal 2 now uses the emulator. No account and no network is needed.

    Exit codes: 0 success, 1 failure (or no emulator is running), 2 invalid command line, 3 no such job, or more than
    one matches. run and rules run exit with the code of the program they run.
    """  # noqa: D301 - click wants the character itself
