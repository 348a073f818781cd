"""The ``smdebug-emulator`` command and the list of its commands."""

from __future__ import annotations

import click

from emulator.cli.check import check
from emulator.cli.doctor import doctor
from emulator.cli.engine import engine
from emulator.cli.events import events
from emulator.cli.images import images
from emulator.cli.interrupt import interrupt
from emulator.cli.job_files import export_job, import_job, open_console, report
from emulator.cli.jobs import describe, jobs, logs, stop_job
from emulator.cli.other_programs import demo, env, plot, rules, run, tensors
from emulator.cli.service import start, status, stop
from emulator.cli.shell_completion import completion
from emulator.cli.state import reset, state
from emulator.cli.stop_handler import stop_handler
from emulator.cli.tensorboard import tensorboard


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="smdebug-emulator", prog_name="smdebug-emulator")
def main() -> None:
    """SageMaker Debugger on this machine: training jobs run, tensors are saved, rules judge them, events stop jobs.

    \b
    Terminal 1:  smdebug-emulator start
    Terminal 2:  eval "$(smdebug-emulator env)"
                 aws s3 mb s3://my-bucket
                 aws sagemaker create-training-job --cli-input-json file://job.json

    Every AWS client in terminal 2 now talks to the emulator; no account and no network is needed.

    Exit codes: 0 it is done, 1 it is not (or no emulator runs), 2 the command line cannot be understood, 3 there is no
    such job. Those of run and rules run are of what they run.
    """  # noqa: D301 - click wants the character itself


COMMANDS: tuple[click.Command, ...] = (
    demo,
    start,
    env,
    run,
    stop,
    status,
    jobs,
    describe,
    logs,
    stop_job,
    tensors,
    plot,
    tensorboard,
    open_console,
    report,
    export_job,
    import_job,
    events,
    interrupt,
    reset,
    state,
    check,
    rules,
    stop_handler,
    images,
    engine,
    doctor,
    completion,
)
for command in COMMANDS:
    main.add_command(command)
