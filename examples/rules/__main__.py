"""Runner of the faulty trainings, with their rules' verdicts.

python -m examples.rules                       every example
python -m examples.rules dead_relu overfit     these
python -m examples.rules dead_relu --cured     the same training without its mistake

What was made stays in the folder that --output names: the emulator's state, for smdebug-emulator start --state-dir.
"""

import argparse
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from examples.rules.job import Example, build_request, find_examples
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import has_ended, stage_digits
from sdk_compat.emulator_process import EmulatorProcess, EmulatorStartError

console = Console(highlight=False)


def main() -> int:
    examples = find_examples()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(examples)} (default: all)")
    parser.add_argument("--cured", action="store_true", help="train without the mistake")
    parser.add_argument("--runtime", choices=["auto", "docker", "process"], default="auto", help="container back end")
    parser.add_argument(
        "--output", type=Path, default=Path(".demo/rules"), help="folder that keeps all (default: %(default)s)"
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(examples))
    if unknown:
        parser.error(f"no example {', '.join(unknown)}; there are {', '.join(examples)}")
    # Jobs of earlier runs are in the folder, too, and a job's name is never given twice.
    suffix = f"-{datetime.now().astimezone():%H%M%S}"
    surprises = 0
    try:
        emulator = EmulatorProcess(arguments.output / "state", runtime=arguments.runtime)
    except (EmulatorStartError, OSError) as error:
        text = f"No emulator can be started on {arguments.output} (--output names another folder): {error}"
        console.print(text, markup=False, style="red", soft_wrap=True)
        return 1
    with emulator:
        console.print(f"[dim]{emulator.first_line}[/dim]")

        client = EmulatorSession(emulator.endpoint_url).client
        sagemaker, s3 = client("sagemaker"), client("s3")
        stage_digits(s3)
        for name in arguments.names or examples:
            surprises += not show(sagemaker, s3, examples[name], cured=arguments.cured, suffix=suffix)
    state = arguments.output / "state"
    console.print(
        f"\nAll of it is kept; smdebug-emulator start --state-dir {state} shows it at /console.", soft_wrap=True
    )
    return min(surprises, 1)


def show(sagemaker: Any, s3: Any, example: Example, *, cured: bool, suffix: str) -> bool:
    """Run one example and print its verdict; tell whether it is the one to expect."""
    console.print(f"\n[bold]{example.name}[/bold]: {example.mistake}")
    started = time.monotonic()
    description = run_example(sagemaker, s3, example, cured=cured, suffix=suffix)
    (rule,) = description["DebugRuleEvaluationStatuses"]
    status = rule["RuleEvaluationStatus"]
    expected = "IssuesFound" if example.fires and not cured else "NoIssuesFound"
    colour = "green" if status == expected else "red"
    console.print(
        f"  {time.monotonic() - started:5.1f} s  training {description['TrainingJobStatus']}, "
        f"{example.rule}: [{colour}]{status}[/{colour}]"
    )
    if "FailureReason" in description:
        console.print(f"           {description['FailureReason']}", markup=False)
    for line in rule.get("StatusDetails", "").splitlines():
        console.print(f"           {line}", markup=False)
    console.print(f"           Job {description['TrainingJobName']} left", markup=False)
    for address in list_outputs(s3, description):
        console.print(f"             {address}", markup=False, soft_wrap=True)
    return bool(status == expected)


def list_outputs(s3: Any, description: dict[str, Any]) -> list[str]:
    """List what a job made: where its tensors are, and each file that its rule left."""
    bucket, _, prefix = description["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://").partition("/")
    own = "/".join(filter(None, (prefix.rstrip("/"), description["TrainingJobName"])))
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"{own}/rule-output/").get("Contents", ())
    tensors = (
        f"{description['DebugHookConfig']['S3OutputPath'].rstrip('/')}/{description['TrainingJobName']}/debug-output/"
    )
    return [tensors, *(f"s3://{bucket}/{each['Key']}" for each in listed)]


def run_example(sagemaker: Any, s3: Any, example: Example, *, cured: bool, suffix: str = "") -> dict[str, Any]:
    """Train an example under its rule and return the job's description once both have ended.

    Args:
        sagemaker: boto3's client of SageMaker.
        s3: boto3's client of S3.
        example: what to train.
        cured: train without the mistake.
        suffix: of the job's name, to tell runs of one example apart.
    """
    job = f"{example.name.replace('_', '-')}-{'cured' if cured else 'sick'}{suffix}"
    other_job = f"{job}-before" if example.compared else None
    if other_job:
        sagemaker.create_training_job(**build_request(s3, example, other_job, cured=cured))
        wait_for_end(sagemaker, other_job)
    sagemaker.create_training_job(**build_request(s3, example, job, cured=cured, other_job=other_job))
    return wait_for_end(sagemaker, job)


def wait_for_end(sagemaker: Any, job: str) -> dict[str, Any]:
    """The description of a job that has ended, and whose rules have."""
    while True:
        description: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=job)
        if has_ended(description):
            return description
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
