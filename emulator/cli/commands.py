"""The ``smdebug-emulator`` command and the list of its commands."""

from __future__ import annotations

import click

from emulator.cli.engine import engine
from emulator.cli.events import events
from emulator.cli.images import images
from emulator.cli.interrupt import interrupt
from emulator.cli.other_programs import demo, env, rules, run
from emulator.cli.service import start, status, stop
from emulator.cli.stop_handler import stop_handler


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """SageMaker Debugger on this machine: training jobs run, tensors are saved, rules judge them, events stop jobs.

    \b
    Terminal 1:  smdebug-emulator start
    Terminal 2:  eval "$(smdebug-emulator env)"
                 aws s3 mb s3://my-bucket
                 aws sagemaker create-training-job --cli-input-json file://job.json

    Every AWS client in terminal 2 now talks to the emulator; no account and no network is needed.
    """  # noqa: D301 - click wants the character itself


for command in (demo, start, env, run, stop, status, events, interrupt, rules, stop_handler, images, engine):
    main.add_command(command)
