"""A harness of jobs in a process that is killed, and its recovery."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.integration.emulator.jobs.job_harness import REGION, JobHarness, open_job_harness
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.unit.smdebug.scripts import ForkingInterpreter

# Runs an emulator's job harness until a condition of its own state holds, then dies as by kill -9.
KILLED = """
import os, pathlib, signal, json
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from tests.integration.emulator.jobs.job_harness import REGION, open_job_harness
from tests.integration.emulator.jobs.runs import test_tuning
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import ENDED, wait_until
with open_job_harness(pathlib.Path({tmp!r}), RecordingPublisher(deliver=False), max_jobs={max_jobs}) as harness:
    {before}
    request = harness.request(script={script!r}, DebugHookConfig=harness.hook(), **{members})
    request["DebugRuleConfigurations"] = [harness.rule(n, b) for n, b in {rules}]
    print(harness.bucket, flush=True)
    harness.jobs.training.create(REGION, request)
    wait_until(lambda: {condition})
    os.kill(os.getpid(), signal.SIGKILL)
"""


# To import an emulator takes longer than its life here.
_IMPORTED = (
    "emulator.jobs.model.rule_evaluation",
    "tests.integration.emulator.jobs.job_harness",
    "tests.integration.emulator.jobs.runs.test_tuning",
    "tests.unit.emulator.jobs.recording_publisher",
)
forking_interpreter = ForkingInterpreter(*_IMPORTED)


def run_and_kill(
    tmp_path: Path,
    script: str,
    *,
    condition: str = "harness.describe()['SecondaryStatus'] == 'Training'",
    rules: list[tuple[str, str]] | None = None,
    members: dict[str, Any] | None = None,
    before: str = "",
    max_jobs: int | None = None,
) -> str:
    """Returns the bucket of the killed harness; its S3 died with it."""
    program = KILLED.format(
        tmp=str(tmp_path),
        script=script,
        condition=condition,
        rules=rules or [],
        members=members or {},
        before=before,
        max_jobs=max_jobs,
    )
    file = tmp_path / "killed.py"
    file.write_text(program)
    done = forking_interpreter.run(file, (), dict(os.environ), 400)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


def recover(
    tmp_path: Path, bucket: str, publisher: RecordingPublisher | None = None, *, max_jobs: int | None = None
) -> Any:
    from emulator.moto_services.s3.objects import ObjectStore

    ObjectStore("123456789012", REGION).create_bucket(bucket)
    return open_job_harness(tmp_path, publisher, bucket=bucket, max_jobs=max_jobs)


def let_go(harness: JobHarness, hosts: str = "algo-*") -> None:
    for job in list((harness.settings.state_dir / "jobs").iterdir()):
        with suppress(FileNotFoundError):  # it has ended meanwhile, with all its hosts
            for folder in job.glob(hosts):
                (folder / "go").touch()


WAIT_FOR_GO = "\nwhile not (ml / 'go').exists(): time.sleep(0.01)\n"
