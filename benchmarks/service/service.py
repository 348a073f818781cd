"""Service under load and idle. Goals: moto_server's rate, p99 under 250 ms.

Sixteen boto3 clients create, describe and list jobs. Each client sends its next request when the last one is answered.
The output bucket of the jobs does not exist. Both servers store the job, and in the emulator it fails in its first
stage. A CreateTrainingJob in the emulator therefore does its usual work: it validates the request, stores and delivers
two statuses and their events, and starts and ends a thread. Only the container, for which no request waits, is omitted.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from benchmarks.shared.clients import CLIENTS, KEY, Load, build_client, send_all
from benchmarks.shared.moto_server import run_moto_server
from emulator.jobs.model.training_job import new_training_job
from emulator.jobs.store.store import JobStore
from emulator.state.job_stores import DEFAULT_ACCOUNT_ID
from sdk_compat.demo.training_job import BUCKET, HEALTHY, ROLE_ARN, TRAINING_IMAGE, build_request, stage_inputs
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS, REQUESTS = 3, 15
TRAININGS, TRAINING_STEPS = 8, 1_000_000
ENDED_JOBS, PAGE, PAGES = 10_000, 100, 5
IDLE_SECONDS = 20
AT_ONCE, JOB_SECONDS = 32, 3
_PATIENCE_SECONDS = 420
# Waits long enough for the other processes to start, and writes a model.
_SHORT_TRAINING = (
    f"import os, time; time.sleep({JOB_SECONDS}); folder = os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml') + '/model'; "
    "open(folder + '/weights', 'wb').write(bytes(1000))"
)


def measure() -> Iterator[str]:
    yield f"load of this machine: {_describe_machine()}"
    yield from measure_idle()
    yield from measure_requests()
    yield from measure_training()
    yield from measure_pages()
    yield from measure_jobs_at_once()
    yield f"load of this machine: {_describe_machine()}"


def measure_idle() -> Iterator[str]:
    """Measure processor time and memory of both servers at the same time, after their first requests."""
    with _both() as servers:
        for url, _ in servers.values():
            build_client("sagemaker", url).list_training_jobs()
            build_client("s3", url).list_buckets()
        time.sleep(2)
        began = {name: _read_processor_seconds(pid) for name, (_, pid) in servers.items()}
        time.sleep(IDLE_SECONDS)
        for name, (_, pid) in servers.items():
            share = (_read_processor_seconds(pid) - began[name]) / IDLE_SECONDS
            memory = sum(_read_resident_bytes(each) for each in _list_family(pid)) / 1e6
            goal = "   (goals: 1 %, 250 MB)" if name == "emulator" else ""
            yield f"idle      {name:<12} {share:6.2%} of a core   {memory:5.0f} MB{goal}"


def measure_requests() -> Iterator[str]:
    """Measure requests per second of both servers in turn, and of an emulator that requires signatures.

    Each round begins with empty servers.
    """
    loads: dict[str, list[Load]] = {"moto_server": [], "emulator": [], "signed": []}
    for _ in range(ROUNDS):
        for name, found in loads.items():
            with _requiring_signatures() if name == "signed" else _both() as servers:
                found.append(send_all(servers[name][0], REQUESTS, build_ending_request()))
    reference = statistics.median(load.rate for load in loads["moto_server"])
    for name, found in loads.items():
        rate = statistics.median(load.rate for load in found)
        goal = "" if name == "signed" else " (goal: 1)"
        yield f"requests  {name:<12} {rate:6.0f}/s   {rate / reference:4.2f} x moto_server{goal}"
        yield f"          {'':<12} {_describe_latency(found)}"


def measure_training() -> Iterator[str]:
    """Measure both servers in turn while jobs of the emulator train, so that both find equally busy processors."""
    with _both() as servers:
        url = servers["emulator"][0]
        sagemaker, s3 = build_client("sagemaker", url), build_client("s3", url)
        stage_inputs(s3)
        names = [f"training-{number}" for number in range(TRAININGS)]
        for name in names:
            request = build_request(name, HEALTHY | {"steps": TRAINING_STEPS})
            del request["DebugRuleConfigurations"]
            sagemaker.create_training_job(**request)
        for name in names:
            prefix = f"tensors/{name}/debug-output/index/"
            _wait(lambda prefix=prefix: s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["KeyCount"] > 1, name)  # type: ignore[misc]
        for name, (url, _) in servers.items():
            load = send_all(url, REQUESTS, build_ending_request())
            every = [seconds for times in load.seconds.values() for seconds in times]
            goal = " (goal: 250)" if name == "emulator" else ""
            p99 = f"p99 of all {_find_percentile(every, 99):5.0f} ms{goal}"
            yield f"beside {TRAININGS} trainings  {name:<12} {load.rate:5.0f}/s   {p99}; {_describe_latency([load])}"
        described = [sagemaker.describe_training_job(TrainingJobName=name) for name in names]
        if any(each["SecondaryStatus"] != "Training" for each in described):
            raise RuntimeError(f"not all trained to the end: {[each['SecondaryStatus'] for each in described]}")


def measure_pages() -> Iterator[str]:
    """Measure pages of a list of many ended jobs, in each sort order; moto_server does not support sorting."""
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder) / "state"
        _store_ended_jobs(state_dir / "jobs.sqlite")
        with EmulatorProcess(state_dir, runtime="process") as emulator:
            sagemaker = build_client("sagemaker", emulator.endpoint_url)
            sagemaker.list_training_jobs(MaxResults=PAGE)
            for by in ("CreationTime", "Name", "Status"):
                for order in ("Ascending", "Descending"):
                    times: list[float] = []
                    more: dict[str, str] = {}
                    for _ in range(PAGES):
                        began = time.perf_counter()
                        page = sagemaker.list_training_jobs(MaxResults=PAGE, SortBy=by, SortOrder=order, **more)
                        times.append((time.perf_counter() - began) * 1000)
                        if len(page["TrainingJobSummaries"]) != PAGE:
                            raise RuntimeError(f"a page of {len(page['TrainingJobSummaries'])} jobs")
                        more = {"NextToken": page["NextToken"]}
                    took = f"median {statistics.median(times):4.0f} ms, slowest {max(times):4.0f} ms of {PAGES}"
                    yield f"a page of {PAGE} of {ENDED_JOBS:,} by {by:<12} {order:<10} {took} (goal: 50 ms)"


def measure_jobs_at_once() -> Iterator[str]:
    """Measure many jobs at once, compared with the same number of plain processes of the same script."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model").mkdir()
        began = time.perf_counter()
        environment = {**os.environ, "SAGEMAKER_BASE_DIR": folder}
        plain = [subprocess.Popen([sys.executable, "-c", _SHORT_TRAINING], env=environment) for _ in range(AT_ONCE)]
        if max(process.wait() for process in plain):
            raise RuntimeError("a plain process failed")
        bare = time.perf_counter() - began
        with EmulatorProcess(Path(folder) / "state", runtime="process") as emulator:
            sagemaker = build_client("sagemaker", emulator.endpoint_url)
            build_client("s3", emulator.endpoint_url).create_bucket(Bucket=BUCKET)
            request = build_ending_request(BUCKET)
            request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["python3", "-c", _SHORT_TRAINING]
            began = time.perf_counter()
            for number in range(AT_ONCE):
                sagemaker.create_training_job(TrainingJobName=f"at-once-{number}", **request)
            sent = time.perf_counter() - began
            most, training = 0.0, 0

            def have_ended() -> bool:
                nonlocal most, training
                most = max(most, sum(map(_read_resident_bytes, _list_family(emulator.process.pid))) / 1e6)
                listed = sagemaker.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]
                training = max(training, sum(each.get("SecondaryStatus") == "Training" for each in listed))
                return all(each["TrainingJobStatus"] not in {"InProgress", "Stopping"} for each in listed)

            _wait(have_ended, "the jobs at once")
            took = time.perf_counter() - began
            own = _read_resident_bytes(emulator.process.pid) / 1e6
            jobs = sagemaker.list_training_jobs(MaxResults=100, StatusEquals="Completed")["TrainingJobSummaries"]
    yield (
        f"{AT_ONCE} jobs at once: {len(jobs)} Completed, {took:5.1f} s (all created after {sent:3.1f} s), "
        f"{took / bare:4.2f} x {AT_ONCE} plain processes at once ({bare:4.1f} s)"
    )
    yield f"   resident memory at most {most:5.0f} MB with all that runs, {own:4.0f} MB the emulator alone after them"
    if len(jobs) != AT_ONCE:
        raise RuntimeError(f"only {len(jobs)} of {AT_ONCE} jobs completed")


@contextmanager
def _requiring_signatures() -> Iterator[dict[str, tuple[str, int]]]:
    """Yield the endpoint and process of an empty emulator that checks signatures and accepts the clients' key."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "emulator", "start", "--port", "0", "--runtime", "process"]
        emulator = subprocess.Popen(
            [*command, "--state-dir", f"{folder}/state", "--require-signature"],
            env={**os.environ, "SMDEBUG_EMULATOR_ACCESS_KEYS": f"{KEY}:{KEY}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert emulator.stdout is not None
            url = emulator.stdout.readline().partition(" ")[0]
            _refuse_to_measure_unsigned(url)
            yield {"signed": (url, emulator.pid)}
        finally:
            emulator.terminate()
            emulator.wait()


def _refuse_to_measure_unsigned(url: str) -> None:
    """Verify that the emulator rejects a wrong secret, so that the measurement includes signature checks.

    Raises:
        RuntimeError: the emulator accepted the wrong secret.
    """
    try:
        build_client("sagemaker", url, secret="another").list_training_jobs()
    except ClientError:
        return
    raise RuntimeError("the emulator that requires signatures answered one that is wrong")


@contextmanager
def _both() -> Iterator[dict[str, tuple[str, int]]]:
    """Start both servers without data, and yield the endpoint and process of each."""
    with ExitStack() as closers:
        folder = Path(closers.enter_context(tempfile.TemporaryDirectory()))
        emulator = closers.enter_context(EmulatorProcess(folder / "state", runtime="process"))
        yield {
            "moto_server": closers.enter_context(run_moto_server()),
            "emulator": (emulator.endpoint_url, emulator.process.pid),
        }


def build_ending_request(bucket: str = "there-is-no-such-bucket") -> dict[str, Any]:
    """Return a request of CreateTrainingJob without the name."""
    return {
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {"TrainingImage": TRAINING_IMAGE, "TrainingInputMode": "File"},
        "HyperParameters": {f"parameter-{number}": "0.001" for number in range(10)},
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    }


def _store_ended_jobs(path: Path) -> None:
    """Store jobs that have gone through all stages, created one second apart; a third of them were stopped."""
    store, request = JobStore(path), build_ending_request()
    with store.transaction() as transaction:
        for number in range(ENDED_JOBS):
            # The jobs have another order by name than by time.
            name, born_ms = f"ended-{number * 7919 % ENDED_JOBS:05}", 1_700_000_000_000 + number * 1000
            job = new_training_job(
                DEFAULT_ACCOUNT_ID, "us-east-1", f"{number:012x}", {**request, "TrainingJobName": name}, born_ms
            )
            job = job.transition("Downloading", born_ms + 100).transition("Training", born_ms + 200)
            if number % 3:
                job = job.transition("Uploading", born_ms + 800).transition("Completed", born_ms + 900)
            else:
                job = job.begin_stop(born_ms + 800).end_stop(born_ms + 900)
            transaction.create_training_job(job, (), ())
    store.close()


def _describe_latency(loads: list[Load]) -> str:
    parts = []
    for operation in ("Create", "Describe", "List"):
        times = [seconds for load in loads for seconds in load.seconds[operation]]
        parts.append(f"{operation} p50 {_find_percentile(times, 50):4.0f} ms p99 {_find_percentile(times, 99):4.0f} ms")
    return "   ".join(parts)


def _find_percentile(seconds: list[float], percent: int) -> float:
    """Return a percentile of the request times, in milliseconds."""
    return statistics.quantiles(seconds, n=100)[percent - 1] * 1000


def _list_family(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    family = [pid]
    for each in family:
        family += children.get(each, [])
    return family


def _read_processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process and of the child processes that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _read_resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _wait(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"{what}: not within {_PATIENCE_SECONDS} s")
        time.sleep(0.1)


def _describe_machine() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {CLIENTS} clients on the same cores"
