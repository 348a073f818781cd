"""First use of the emulator, as a step of the build of its image.

Python stores the bytecode of what is imported on the way. All else is compiled when it is first imported, in a fraction
of a second, which most containers never need: bytecode of all packages would be as large as their sources.
"""

import io
import os
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_COMMAND = "smdebug-emulator"
_CALLS = {
    "cloudwatch": "list_metrics",
    "ecr": "describe_repositories",
    "events": "list_rules",
    "iam": "list_roles",
    "kms": "list_keys",
    "lambda": "list_functions",
    "logs": "describe_log_groups",
    "s3": "list_buckets",
    "sagemaker": "list_training_jobs",
    "sns": "list_topics",
    "sqs": "list_queues",
    "sts": "get_caller_identity",
}
"""What jobs with rules and a stop handler use, by a call of each service."""

_IMPORTS = "import smdebug.rules.evaluator, smdebug.trials, numpy.random, awslambdaric.bootstrap"
"""What a rule's container and a function's worker import."""

_LITERALS = "iam/__pycache__/aws_managed_policies.*.pyc"
"""Of a module of moto that is one text of 5 MB, which is compiled as fast as it is read."""


def main() -> None:
    """Start an emulator on a folder of its own, use it, and stop it."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, XDG_CACHE_HOME=home, SMDEBUG_EMULATOR_STATE_DIR=f"{home}/state")
        os.environ.update(SMDEBUG_EMULATOR_HOST="127.0.0.1")
        command = [_COMMAND, "start", "--port", "0", "--runtime", "process"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if " answers. " not in line:
                    raise SystemExit("The emulator did not start.")
                use(line.split()[0])
            finally:
                process.terminate()
        subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
        moto = find_spec("moto")
        assert moto is not None
        for folder in moto.submodule_search_locations or ():
            for path in Path(folder).glob(_LITERALS):
                path.unlink()
        if process.returncode:
            raise SystemExit(f"The emulator ended with exit code {process.returncode}.")


def use(endpoint_url: str) -> None:
    """Use the commands and services of the emulator at a URL."""
    import boto3

    for arguments in (["status"], ["stop-handler", "deploy"]):
        subprocess.run([_COMMAND, *arguments, "--remote", endpoint_url], check=True, stdout=subprocess.DEVNULL)
    os.environ.update(dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "any"))
    os.environ.update(AWS_DEFAULT_REGION="us-east-1")
    build: Any = boto3.client  # its type has an overload for each name of a service
    clients = {name: build(name, endpoint_url=endpoint_url) for name in _CALLS}
    for name, call in _CALLS.items():
        getattr(clients[name], call)()
    clients["s3"].create_bucket(Bucket="first-use")
    clients["s3"].put_object(Bucket="first-use", Key="key", Body=b"content")
    clients["s3"].get_object(Bucket="first-use", Key="key")["Body"].read()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("handler.py", "import boto3\ndef answer(event, context):\n    return event\n")
    role = clients["iam"].create_role(
        RoleName="first-use",
        AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service":'
        ' "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}',
    )["Role"]["Arn"]
    clients["lambda"].create_function(
        FunctionName="first-use",
        Runtime=f"python3.{sys.version_info.minor}",
        Role=role,
        Handler="handler.answer",
        Code={"ZipFile": content.getvalue()},
    )
    answer = clients["lambda"].invoke(FunctionName="first-use", Payload=b"1")
    if answer["Payload"].read() != b"1":
        raise SystemExit("The function did not answer.")


if __name__ == "__main__":
    main()
