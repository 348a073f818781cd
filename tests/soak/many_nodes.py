"""Soak: many jobs on many simulated nodes, some of which are lost.

Checked are the admission of the jobs and the end of each.

The jobs are real: requests, admission, lives, database and events. What is simulated is where their containers run,
behind the interface that every back end keeps, in compressed time: ``simulated_nodes.py``.

    python -m tests.soak.many_nodes --nodes 1000 --jobs 10000
"""

import argparse
import logging
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from emulator.exceptions import ValidationException
from emulator.jobs import Jobs, build_services
from emulator.jobs.runs.admission import Admission
from emulator.jobs.store.store import JobStore
from emulator.moto_services.s3.objects import ObjectStore
from emulator.settings import Settings
from emulator.state.disk import DiskBudget
from tests.soak.simulated_nodes import PLAN, REFUSED, Clock, SimulatedNodes
from tests.unit.emulator.jobs.recording_publisher import RecordingPublisher
from tests.waiting import wait_until

ACCOUNT, REGION, BUCKET = "123456789012", "us-east-1", "many-nodes"
MEAN_SECONDS = 600.0
# No job ends for so long where something holds all of them up.
PATIENCE_SECONDS = 180.0
# Of a hundred jobs each. What is left completes.
FAILING, KILLED, REFUSED_SHARE, STOPPED, LARGE = 6, 3, 3, 6, 5
_ENDS = {"complete": "Completed", "fail": "Failed", "kill": "Failed", "refuse": "Failed", "stop": "Stopped"}


class WatchedPlaces(dict[str, int]):
    """The places that admission has given away: it sees whoever gets one out of turn, or one too many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self.admission: Admission | None = None
        self.wrong: list[str] = []
        self.most_taken = self.admitted = 0

    def __setitem__(self, arn: str, hosts: int) -> None:
        """Called by admission, which holds its lock."""
        assert self.admission is not None
        waiting = self.admission._waiting
        if waiting and waiting[0].arn != arn:
            self.wrong.append(f"{arn} before {waiting[0].arn}")
        super().__setitem__(arn, hosts)
        taken = sum(self.values())
        if taken > self._most and len(self) > 1:
            self.wrong.append(f"{taken} of {self._most} places taken")
        self.admitted += 1
        self.most_taken = max(self.most_taken, taken)


class Report(dict[str, Any]):
    """What was seen, by name."""


def build_job(number: int, plan: str, seconds: float, hosts: int) -> dict[str, Any]:
    return {
        "TrainingJobName": f"job-{number:05}",
        "AlgorithmSpecification": {"TrainingImage": "simulated:1", "TrainingInputMode": "File"},
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/x",
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": hosts, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "Environment": {PLAN: f"{plan} {seconds:.1f}"},
    }


def simulate(nodes: int, jobs: int, seed: int, folder: Path, compression: float, at_once: int) -> Report:
    """Run the jobs, the nodes being lost meanwhile; return what was seen, ``wrong`` among it.

    Args:
        nodes: of one place each.
        jobs: how many.
        seed: draws what becomes of each.
        folder: for the state.
        compression: simulated seconds in one of the machine's.
        at_once: so many jobs are there at once, waiting or running; the next is created when one has ended.
    """
    random, began = Random(seed), time.monotonic()
    clock = Clock(compression)
    runtime = SimulatedNodes(nodes, clock)
    places = WatchedPlaces(nodes)
    admission = Admission(nodes, DiskBudget(folder, 0))
    admission._running = places
    places.admission = admission
    store, publisher = JobStore(folder / "jobs.sqlite"), RecordingPublisher()
    s3 = ObjectStore(ACCOUNT, REGION)
    s3.create_bucket(BUCKET)
    settings = Settings(state_dir=folder, account_id=ACCOUNT, stop_grace_seconds=1.0, max_jobs=nodes)
    service = Jobs(build_services(settings, store, runtime, publisher, "http://127.0.0.1:1", admission=admission))
    plans: dict[str, str] = {}
    done = threading.Event()
    chaos = threading.Thread(target=_break_things, args=(runtime, nodes, Random(seed + 1), clock, done), name="chaos")
    most_threads = 0
    try:
        for number in range(jobs):
            while len(service.list_active()) >= at_once:
                time.sleep(0.02)
            most_threads = max(most_threads, threading.active_count())
            plan = _draw_plan(random)
            hosts = random.randint(2, 4) if random.randrange(100) < LARGE and nodes >= 4 else 1
            seconds = random.expovariate(1 / MEAN_SECONDS)
            request = build_job(number, "complete" if plan == "stop" else plan, seconds, hosts)
            plans[request["TrainingJobName"]] = plan
            service.training.create(REGION, request)
            if plan == "stop":
                name = request["TrainingJobName"]
                clock.after(random.uniform(0, 2 * MEAN_SECONDS), partial(_stop, service, name))
            if number + 1 == min(jobs, at_once):
                # Until then no job ends. Otherwise a slow machine would have few jobs at once.
                _wait_for_first_jobs(service, admission, places, nodes)
                clock.start()
                chaos.start()
        seen, changed = len(service.list_active()), time.monotonic()
        while active := service.list_active():
            if len(active) != seen:
                seen, changed = len(active), time.monotonic()
            if time.monotonic() > changed + PATIENCE_SECONDS:
                raise RuntimeError(f"{seen} jobs go on no more: {sorted(active)[:5]} …; {len(places)} have places")
            time.sleep(0.05)
    finally:
        done.set()
        if chaos.ident is not None:
            chaos.join()
        service.close()
        clock.close()
    report = Report(
        nodes=nodes,
        jobs=jobs,
        seconds=round(time.monotonic() - began, 1),
        simulated_hours=round(clock.now() / 3600, 1),
        containers=runtime.begun,
        lost=runtime.lost,
        most_places_taken=places.most_taken,
        most_running=runtime.most_running,
        most_threads=most_threads,
    )
    report["ends"], wrong = _check_ends(store, publisher, plans)
    report["wrong"] = wrong + places.wrong + runtime.wrong + [f"left: {each}" for each in runtime.list_left()]
    store.close()
    return report


def _wait_for_first_jobs(service: Jobs, admission: Admission, places: WatchedPlaces, nodes: int) -> None:
    """Wait until each job has a place or waits for one, and the first that waits does not fit."""

    def have_asked() -> bool:
        waiting = list(admission._waiting)
        if len(places) + len(waiting) < len(service.list_active()):
            return False
        return not waiting or sum(places.values()) + waiting[0].hosts > nodes

    wait_until(have_asked, lambda: f"places for {nodes} hosts: {len(places)} jobs have some", seconds=PATIENCE_SECONDS)


def _draw_plan(random: Random) -> str:
    drawn = random.randrange(100)
    for plan, share in (("fail", FAILING), ("kill", KILLED), ("refuse", REFUSED_SHARE), ("stop", STOPPED)):
        if drawn < share:
            return plan
        drawn -= share
    return "complete"


def _stop(service: Jobs, name: str) -> None:
    """Stop a job as a user does, who may be too late."""
    with suppress(ValidationException):
        service.training.stop(REGION, name)


def _break_things(runtime: SimulatedNodes, nodes: int, random: Random, clock: Clock, done: threading.Event) -> None:
    """Lose one that runs something, then each node every three hours of simulated time, and the manager every hour."""
    while not done.wait(max(0.02, 60 / clock.compression)):
        if not runtime.lost:  # a short run draws none that runs something if it has few turns
            for node in runtime.list_busy()[:1]:
                runtime.lose(node, random.uniform(60, 600))
        for _ in range(nodes // 200 + (random.random() < nodes % 200 / 200)):
            runtime.lose(random.randrange(nodes), random.uniform(60, 600))
        if random.random() < 0.02:
            runtime.go_away(random.uniform(5, 60))


def _check_ends(
    store: JobStore, publisher: RecordingPublisher, plans: Mapping[str, str]
) -> tuple[dict[str, int], list[str]]:
    """Find every job that has not the one right end, told once."""
    wrong, ends = [], Counter[str]()
    told = Counter(
        (each["detail"]["TrainingJobName"], each["detail"]["TrainingJobStatus"])
        for each in publisher.events
        if each["detail-type"] == "SageMaker Training Job State Change"
        and each["detail"]["TrainingJobStatus"] in ("Completed", "Failed", "Stopped")
    )
    for name, plan in plans.items():
        job = store.find_training_job(REGION, name)
        if job is None:
            wrong.append(f"{name} is lost")
            continue
        ends[job.status] += 1
        # Who stops a job may be too late.
        right = {_ENDS[plan], *({"Completed"} if plan == "stop" else ())}
        if job.status not in right:
            wrong.append(f"{name} was to {plan} and is {job.status}: {job.failure_reason}")
        if plan == "refuse" and REFUSED not in (job.failure_reason or ""):
            wrong.append(f"{name} does not say why it failed: {job.failure_reason}")
        if (number := sum(told[name, status] for status in ("Completed", "Failed", "Stopped"))) != 1:
            wrong.append(f"{name}: its end was told {number} times")
    return dict(ends), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=3000, help="jobs that wait or run at once")
    parser.add_argument("--compression", type=float, default=60.0, help="simulated seconds in one second")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="many-nodes-") as folder:
        report = simulate(chosen.nodes, chosen.jobs, chosen.seed, Path(folder), chosen.compression, chosen.at_once)
    wrong = report.pop("wrong")
    for name, value in (*report.items(), ("wrong", len(wrong))):
        sys.stdout.write(f"{name:<18} {value}\n")
    sys.exit("\n".join(wrong[:20]) if wrong else 0)


if __name__ == "__main__":
    main()
