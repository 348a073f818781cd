"""Environment variable reference, generated from the code that uses them."""

import inspect
import re
import tempfile
from pathlib import Path

from emulator.jobs.staging.opt_ml import build_aws_environment, build_environment
from emulator.settings import Settings, list_options, name_variable
from sdk_compat.environment import OVERRULING_VARIABLES, prepare_command_environment, prepare_environment

READ_ELSEWHERE = {
    "AWS_CA_BUNDLE": "certificates that clients trust, for an emulator with TLS; set by `env`, `run` and in containers",
    "AWS_ENDPOINT_URL": "for commands that read S3 (`rules run`): the S3 to use instead of the running emulator's",
    "COLUMNS": "width of tables, if the output is not a terminal",
    "DOCKER_HOST": "address of the Docker engine",
    "PIP_*, proxies": "the source of packages: pip uses these variables while images and environments are built",
    "HOME": "home folder, in which files are kept if the XDG variables are not set",
    "SHELL": "the shell of `completion install`",
    "SMDEBUG_EMULATOR_REMOTE": "address of an emulator elsewhere, for all commands; it overrules the state folder",
    "SMDEBUG_EMULATOR_SECRET": "secret with which the clients of `env` and `run` sign; set by these commands",
    "SMDEBUG_EMULATOR_STATE_DIR": "folder of all data that survives a restart; `env` and `run` set it for commands",
    "XDG_CACHE_HOME": "folder for environments and clients' files, in its subfolder `smdebug-emulator`",
    "XDG_STATE_HOME": "folder for the state (subfolder `smdebug-emulator`) without SMDEBUG_EMULATOR_STATE_DIR",
}
"""Variables of the user's environment that are read in addition to the settings."""

SET_FOR_CLIENTS = {
    "AWS_ACCESS_KEY_ID": "signs as the emulator's account",
    "AWS_CA_BUNDLE": "only if the emulator uses TLS: certificates to trust; NODE_EXTRA_CA_CERTS for Node",
    "AWS_CONFIG_FILE": "`run` only: profiles with the names of yours, which all use the emulator",
    "AWS_DATA_PATH": "endpoint rules for services whose address is fixed in the SDK or the CLI, such as STS",
    "AWS_DEFAULT_REGION": "region of clients that name none",
    "AWS_DISABLE_HOST_PREFIX_INJECTION": "clients add no prefix to the emulator's host name",
    "AWS_EC2_METADATA_DISABLED": "clients do not look for credentials of an EC2 instance",
    "AWS_ENDPOINT_URL": "address of the emulator",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "`false`: clients use AWS_ENDPOINT_URL",
    "AWS_REGION": "region of clients that name none",
    "AWS_SECRET_ACCESS_KEY": "signs as the emulator's account",
    "AWS_SESSION_TOKEN": "with `--role` only",
    "AWS_SHARED_CREDENTIALS_FILE": "`run` only: credentials of those profiles",
    "NODE_OPTIONS": "`run` only: a start-up hook for endpoints in Node code",
    "NO_PROXY": "`run` only: clients use no proxy for the emulator",
    "PYTHONPATH": "a start-up hook that shortens the SDK's waits; with `run`, also for endpoints in Python code",
    "SAGEMAKER_USER_CONFIG_OVERRIDE": "the SDK sends no telemetry",
    "SAGEMAKER_VALIDATE_ROLE": "version 3 of the SDK does not check roles with IAM",
    "SMDEBUG_EMULATOR_ONLY": "`run` only: the start-up hook keeps Python programs off AWS",
    "SMDEBUG_EMULATOR_POLL_SECONDS": "seconds after which the SDK polls a job again; `off`: the SDK's own interval",
    "no_proxy": "`run` only: clients use no proxy for the emulator",
}
IN_CONTAINERS = {
    "AWS_ACCESS_KEY_ID": "valid for this emulator only",
    "AWS_CA_BUNDLE": "only if the emulator uses TLS: certificates to trust; NODE_EXTRA_CA_CERTS for Node",
    "AWS_DEFAULT_REGION": "the job's",
    "AWS_ENDPOINT_URL": "address of the emulator for the container",
    "AWS_MAX_ATTEMPTS": "so that clients survive a restart of the emulator, unless the request's Environment sets it",
    "AWS_REGION": "the job's",
    "AWS_RETRY_MODE": "as AWS_MAX_ATTEMPTS",
    "AWS_SECRET_ACCESS_KEY": "valid for this emulator only",
    "CHECKPOINT_CONFIG_FILE_PATH": "the job's CheckpointConfig",
    "SAGEMAKER_BASE_DIR": "location of `/opt/ml`; only for local processes that have it elsewhere",
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
            "The variables of the library `smdebug`, in scripts, notebooks and containers, are on",
            "[its own page](../smdebug.md#a-hook-from-a-configuration).",
            "",
            "## Settings of the emulator",
            "",
            "Options of `smdebug-emulator start` override these variables.",
            "",
            "| variable | meaning | default | valid values |",
            "|---|---|---|---|",
            *_list_settings(),
            "",
            "## Other variables that commands read",
            "",
            *_write_table(READ_ELSEWHERE),
            "",
            "## Variables that `env` and `run` set",
            "",
            (
                '`eval "$(smdebug-emulator env)"` unsets endpoints of services, such as `AWS_ENDPOINT_URL_S3`, and '
                f"{', '.join(f'`{name}`' for name in OVERRULING_VARIABLES)}."
            ),
            "",
            *_write_table({name: SET_FOR_CLIENTS.get(name, "") for name in list_client_variables()}),
            "",
            "## Variables in training containers",
            "",
            "These are set in addition to the request's Environment, and to the variables that AWS's training toolkit",
            "derives from `/opt/ml/input/config`.",
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
