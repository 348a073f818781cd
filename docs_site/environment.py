"""Environment variable reference, generated from the code that uses them."""

import inspect
import re
import tempfile
from pathlib import Path

from emulator.jobs.staging.opt_ml import build_aws_environment, build_environment
from emulator.settings import Settings, list_options, name_variable
from sdk_compat.environment import OVERRULING_VARIABLES, prepare_command_environment, prepare_environment

READ_ELSEWHERE = {
    "AWS_CA_BUNDLE": "what clients of an emulator over TLS trust; `env`, `run` and containers have it set",
    "AWS_ENDPOINT_URL": "of commands that read S3 (`rules run`): that S3, in place of the running emulator's",
    "COLUMNS": "the width of tables, where the output is not a terminal",
    "DOCKER_HOST": "the engine whose containers are used",
    "PIP_*, proxies": "where packages come from: pip's own variables hold while images and environments are built",
    "HOME": "the home folder, below which files are kept where the XDG variables are not set",
    "SHELL": "the shell of `completion install`",
    "SMDEBUG_EMULATOR_SECRET": "what the programs behind `env` and `run` sign with; the commands set it themselves",
    "SMDEBUG_EMULATOR_STATE_DIR": "folder of what survives a restart; commands find the running emulator by it",
    "XDG_CACHE_HOME": "where environments and clients' files are kept: below it, in `smdebug-emulator`",
    "XDG_STATE_HOME": "where state is kept without SMDEBUG_EMULATOR_STATE_DIR: below it, in `smdebug-emulator`",
}
"""Variables of the user's environment that are read in addition to the settings."""

SET_FOR_CLIENTS = {
    "AWS_ACCESS_KEY_ID": "signs as the emulator's account",
    "AWS_CA_BUNDLE": "where the emulator answers over TLS only, as NODE_EXTRA_CA_CERTS for Node: what to trust",
    "AWS_CONFIG_FILE": "`run` only: profiles of the names that there are, all of the emulator",
    "AWS_DATA_PATH": "endpoint rules for services whose address the SDK or the CLI spells out, such as STS",
    "AWS_DEFAULT_REGION": "region of clients that name none",
    "AWS_DISABLE_HOST_PREFIX_INJECTION": "no client puts a name before the emulator's address",
    "AWS_EC2_METADATA_DISABLED": "no client looks for an instance's credentials",
    "AWS_ENDPOINT_URL": "the emulator",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "whether endpoints are ignored: they are not",
    "AWS_REGION": "region of clients that name none",
    "AWS_SECRET_ACCESS_KEY": "signs as the emulator's account",
    "AWS_SESSION_TOKEN": "with `--role` only",
    "AWS_SHARED_CREDENTIALS_FILE": "`run` only: credentials of those profiles",
    "NODE_OPTIONS": "`run` only: a start-up hook for endpoints that code for Node names",
    "NO_PROXY": "`run` only: the emulator is asked directly",
    "PYTHONPATH": "a start-up hook: short waits of the SDK; under `run` also for endpoints that code names",
    "SAGEMAKER_USER_CONFIG_OVERRIDE": "the SDK sends no telemetry",
    "SAGEMAKER_VALIDATE_ROLE": "version 3 of the SDK asks IAM about no role",
    "SMDEBUG_EMULATOR_ONLY": "`run` only: the start-up hook keeps Python programs off AWS",
    "SMDEBUG_EMULATOR_POLL_SECONDS": "seconds between the SDK's looks at a job it waits for; `off`: its own",
    "no_proxy": "`run` only: the emulator is asked directly",
}
IN_CONTAINERS = {
    "AWS_ACCESS_KEY_ID": "good for this emulator only",
    "AWS_CA_BUNDLE": "where the emulator answers over TLS only, as NODE_EXTRA_CA_CERTS for Node: what to trust",
    "AWS_DEFAULT_REGION": "the job's",
    "AWS_ENDPOINT_URL": "the emulator, as the container reaches it",
    "AWS_MAX_ATTEMPTS": "unless the request's Environment says how often: clients outlast a restart of the emulator",
    "AWS_REGION": "the job's",
    "AWS_RETRY_MODE": "unless the request's Environment says how",
    "AWS_SECRET_ACCESS_KEY": "good for this emulator only",
    "CHECKPOINT_CONFIG_FILE_PATH": "the job's CheckpointConfig",
    "SAGEMAKER_BASE_DIR": "where `/opt/ml` is; only of local processes that have it at another place",
    "SAGEMAKER_METRICS_DIRECTORY": "where metrics are written",
    "SMDEBUG_CONFIG_FILE_PATH": "the job's DebugHookConfig",
    "SMDEBUG_WARNINGS_PATH": "where `smdebug` reports warnings for the job's users",
    "SMPROFILER_CONFIG_PATH": "the job's ProfilerConfig",
    "TENSORBOARD_CONFIG_FILE_PATH": "the job's TensorBoardOutputConfig",
    "TRAINING_JOB_ARN": "the job's",
    "TRAINING_JOB_NAME": "the job's",
}


def build_environment_page() -> str:
    """Return the page; a variable without a description above is listed without one."""
    return "\n".join(
        [
            "# Environment variables",
            "",
            "This page is written from what reads and sets them. Those of the library `smdebug`, in scripts, notebooks",
            "and containers, are on [its own page](../smdebug.md#a-hook-from-a-configuration).",
            "",
            "## Settings of the emulator",
            "",
            "Options of `smdebug-emulator start` win over them.",
            "",
            "| variable | meaning | default | fits |",
            "|---|---|---|---|",
            *_list_settings(),
            "",
            "## What the commands read besides",
            "",
            *_write_table(READ_ELSEWHERE),
            "",
            "## What `env` and `run` set",
            "",
            f'`eval "$(smdebug-emulator env)"` unsets {", ".join(f"`{name}`" for name in OVERRULING_VARIABLES)}.',
            "",
            *_write_table({name: SET_FOR_CLIENTS.get(name, "") for name in list_client_variables()}),
            "",
            "## In training containers",
            "",
            "Beside the request's Environment, and what AWS's training toolkit makes of `/opt/ml/input/config`.",
            "",
            *_write_table({name: IN_CONTAINERS.get(name, "") for name in list_container_variables()}),
            "",
        ]
    )


def _list_settings() -> list[str]:
    defaults = Settings()
    return [
        f"| `{name_variable(name)}` | {option.help} | `{getattr(defaults, name)}` | {option.wanted} |"
        for name, option in list_options().items()
        if option.in_environment
    ]


def list_client_variables() -> list[str]:
    """Return the names of the variables that `env`, `env --role` and `run` set."""
    with tempfile.TemporaryDirectory() as folder:
        home = {"HOME": folder, "XDG_CACHE_HOME": folder}
        for_shells = prepare_environment("http://127.0.0.1:4580", home, folder=Path(folder))
        for_commands = prepare_command_environment("http://127.0.0.1:4580", home)
    return sorted({*for_shells, *for_commands, "AWS_SESSION_TOKEN"} - home.keys())


def list_container_variables() -> list[str]:
    """Return the names of the variables that the service sets in a training container, read from its source code."""
    named = re.findall(r'"([A-Z][A-Z_]+)": ', inspect.getsource(build_environment))
    aws = build_aws_environment("us-east-1", Settings().container_credentials, "http://127.0.0.1:4580")
    return sorted({*named, *aws, "SAGEMAKER_BASE_DIR"})


def _write_table(described: dict[str, str]) -> list[str]:
    return ["| variable | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in described.items())]
