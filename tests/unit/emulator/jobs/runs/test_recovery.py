"""Tests of recovery: jobs that go on, and what else a killed emulator left."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from container_runtime.runtime import Container, ContainerRuntimeError, FoundNetwork
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation, new_rule_evaluation
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.runs.containers.container import HOST_LABEL, JOB_LABEL, STORE_LABEL
from emulator.jobs.runs.recovery import LeftOver, find_left_over, list_ended_folders
from emulator.jobs.staging.opt_ml import find_work_folder
from emulator.jobs.store.store import JobStore
from emulator.settings import Settings

ACCOUNT, REGION = "123456789012", "us-east-1"


class Engine:
    """An engine's containers and networks, and what was removed of them."""

    def __init__(self) -> None:
        self.containers: list[Container] = []
        self.networks: list[FoundNetwork] = []
        self.removed: list[str] = []
        self.fails = False

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        return [each for each in self.containers if labels.items() <= each.labels.items()]

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        return [each for each in self.networks if labels.items() <= each.labels.items()]

    def remove(self, container_id: str) -> None:
        self.removed.append(container_id)
        if self.fails:
            raise ContainerRuntimeError("it is gone")

    remove_network = remove


class Left:
    """What a killed emulator left: a store, folders, and an engine's containers."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(state_dir=folder)
        self.store = JobStore(folder / "jobs.sqlite")
        self.engine = Engine()

    def add_training_job(
        self,
        name: str,
        *stages: str,
        instances: int = 1,
        rules: tuple[str, ...] = (),
        folder: bool = True,
        **members: Any,
    ) -> TrainingJob:
        request = {
            "TrainingJobName": name,
            "AlgorithmSpecification": {"TrainingInputMode": "File"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": instances},
            **members,
        }
        job = new_training_job(ACCOUNT, REGION, name.encode().hex(), request, 1_000)
        evaluations = [
            new_rule_evaluation(ACCOUNT, REGION, name, number, {"RuleConfigurationName": rule}, f"{number}abc", 1_000)
            for number, rule in enumerate(rules)
        ]
        with self.store.transaction() as transaction:
            transaction.create_training_job(job, evaluations, [])
            for number, stage in enumerate(stages, start=2):
                reason = {"failure_reason": "why"} if stage == "Failed" else {}
                job = job.transition(stage, number * 1_000, **reason)  # type: ignore[arg-type]
            transaction.save_job(job)
        if folder:
            self.find_folder(name, job.id).mkdir(parents=True)
        return job

    def add_processing_job(self, name: str, instances: int = 1, *, folder: bool = True) -> ProcessingJob:
        resources = {"ClusterConfig": {"InstanceType": "ml.m5.large", "InstanceCount": instances}}
        job = ProcessingJob(
            account_id=ACCOUNT,
            region=REGION,
            name=name,
            id=name.encode().hex(),
            request={"ProcessingJobName": name, "ProcessingResources": resources},
            creation_ms=1_000,
            last_modified_ms=1_000,
        )
        with self.store.transaction() as transaction:
            transaction.create_job(job, [])
        if folder:
            self.find_folder(name, job.id).mkdir(parents=True)
        return job

    def find_folder(self, name: str, job_id: str) -> Path:
        return find_work_folder(self.settings, name, job_id)

    def change(self, job: Any, changed: Any) -> Any:
        with self.store.transaction() as transaction:
            transaction.save_job(changed)
        return changed

    def list_rules(self, job: TrainingJob) -> list[RuleEvaluation]:
        return self.store.list_rule_evaluations_of(job)

    def add_containers(self, arn: str, *hosts: str, store: str | None = None) -> None:
        for host in hosts:
            labels = {STORE_LABEL: store or self.store.id, JOB_LABEL: arn, HOST_LABEL: host}
            name = f"{arn.rpartition('/')[2]}/{host}"
            self.engine.containers.append(Container(name, name, labels, running=True))

    def add_network(self, arn: str) -> None:
        labels = {STORE_LABEL: self.store.id, JOB_LABEL: arn}
        self.engine.networks.append(FoundNetwork(f"network-of-{arn.rpartition('/')[2]}", labels))

    def find(self, *ended: Any) -> LeftOver:
        engine: Any = self.engine
        return find_left_over(self.store, engine, self.settings, ended)


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Left]:
    made = Left(tmp_path)
    yield made
    made.store.close()


def test_a_job_continues_with_the_containers_of_all_its_hosts(left: Left) -> None:
    job = left.add_training_job("job", "Downloading", "Training", instances=2)
    left.add_containers(job.arn, "algo-1", "algo-2")
    left.add_network(job.arn)
    found = left.find()
    ((attached, containers),) = found.jobs
    assert attached == job
    assert list(containers) == ["algo-1", "algo-2"]
    assert (found.restarted_jobs, found.lost_jobs, left.engine.removed) == ([], [], [])


@pytest.mark.parametrize(
    ("stages", "hosts", "folder", "members"),
    [
        (("Downloading", "Training"), ("algo-1",), True, {}),
        (("Downloading", "Training"), (), True, {}),
        (("Downloading", "Training"), ("algo-1", "algo-2"), False, {}),
        ((), ("algo-1", "algo-2"), True, {}),
        (
            ("Downloading", "Training"),
            ("algo-1", "algo-2"),
            True,
            {"InputDataConfig": [{"ChannelName": "c", "InputMode": "Pipe", "DataSource": {}}]},
        ),
    ],
)
def test_a_job_begins_again_that_cannot_go_on(
    left: Left, stages: tuple[str, ...], hosts: tuple[str, ...], folder: bool, members: dict[str, Any]
) -> None:
    """A host or the folder is gone, nothing had started yet, or its pipes ended with the emulator."""
    job = left.add_training_job("job", *stages, instances=2, folder=folder, **members)
    left.add_containers(job.arn, *hosts)
    left.add_network(job.arn)
    found = left.find()
    assert (found.jobs, found.restarted_jobs, found.lost_jobs) == ([], [job], [])
    assert left.engine.removed == [*(f"job/{host}" for host in hosts), "network-of-job"]


def test_a_job_that_was_stopping_ends(left: Left) -> None:
    job = left.add_training_job("job", "Downloading", "Training")
    job = left.change(job, job.begin_stop(9_000))
    found = left.find()
    assert (found.jobs, found.restarted_jobs, found.lost_jobs) == ([], [], [job])


def test_containers_of_other_emulators_stay(left: Left) -> None:
    job = left.add_training_job("job", "Downloading", "Training")
    left.add_containers(job.arn, "algo-1", store="another")
    assert left.find().restarted_jobs == [job]
    assert left.engine.removed == []


def test_what_no_job_has_any_more_is_removed_though_some_of_it_cannot_be(left: Left) -> None:
    ended = left.add_training_job("ended", "Downloading", "Training", "Uploading", "Completed")
    for arn in (ended.arn, "arn:of/unknown"):
        left.add_containers(arn, "algo-1")
        left.add_network(arn)
    left.engine.fails = True
    assert left.find() == LeftOver([], [], [], [], [])
    assert left.engine.removed == ["ended/algo-1", "unknown/algo-1", "network-of-ended", "network-of-unknown"]


def test_a_rule_continues_or_restarts_unless_it_waits_for_its_job(left: Left) -> None:
    job = left.add_training_job("job", "Downloading", "Training", rules=("Runs", "Lost", "Waits"))
    left.add_containers(job.arn, "algo-1")
    runs, lost, _ = left.list_rules(job)
    runs, lost = (left.change(rule, rule.start(5_000)) for rule in (runs, lost))
    left.add_containers(runs.arn, "algo-1")
    left.find_folder(runs.name, job.id).mkdir()
    found = left.find()
    assert [(rule.rule_configuration_name, list(containers)) for rule, containers in found.evaluations] == [
        ("Runs", ["algo-1"]),
        ("Lost", []),
    ]
    assert left.engine.removed == []


def test_a_rule_that_never_started_ends_with_its_job(left: Left) -> None:
    job = left.add_training_job("job", "Downloading", "Training", "Uploading", "Completed", rules=("Waits",))
    (waits,) = left.list_rules(job)
    assert left.find().evaluations == [(waits, {})]


@pytest.mark.parametrize("has_container", [True, False])
def test_a_rule_that_has_its_verdict_keeps_the_container_that_still_reports(left: Left, has_container: bool) -> None:
    job = left.add_training_job("job", "Downloading", "Training", "Uploading", "Completed", rules=("Judged",))
    (rule,) = left.list_rules(job)
    rule = left.change(rule, rule.start(5_000).transition("NoIssuesFound", 6_000))
    left.find_folder(rule.name, job.id).mkdir()
    if has_container:
        left.add_containers(rule.arn, "algo-1")
    found = left.find(rule, job)
    assert [rule.name for rule, _ in found.evaluations] == ([rule.name] if has_container else [])
    assert left.engine.removed == []


@pytest.mark.parametrize(
    ("hosts", "folder", "goes_on"), [(2, True, True), (1, True, False), (0, True, False), (2, False, False)]
)
def test_a_processing_job_continues_or_restarts(left: Left, hosts: int, folder: bool, goes_on: bool) -> None:
    job = left.add_processing_job("process", 2, folder=folder)
    names = [f"algo-{number}" for number in range(1, hosts + 1)]
    left.add_containers(job.arn, *names)
    left.add_network(job.arn)
    ((found, containers),) = left.find().processing_jobs
    assert found == job
    assert list(containers) == (names if goes_on else [])
    assert left.engine.removed == ([] if goes_on else [*(f"process/{name}" for name in names), "network-of-process"])


def test_folders_of_ended_jobs_are_listed_with_their_owners(left: Left) -> None:
    ended = ("Downloading", "Training", "Uploading", "Completed")
    trained = left.add_training_job("trained", *ended, rules=("Judged", "Judges"))
    left.add_training_job("running", "Downloading")
    left.add_training_job("gone", *ended, folder=False)
    judged, judges = left.list_rules(trained)
    judged = left.change(judged, judged.start(5_000).transition("NoIssuesFound", 6_000))
    processed = left.add_processing_job("processed-1")
    processed = left.change(processed, processed.transition("Completed", 5_000))
    left.add_processing_job("processing")
    for rule in (judged, judges):
        left.find_folder(rule.name, trained.id).mkdir()
    # Of an earlier job of the same name, and of none.
    for name in ("trained-other", "stray", "a-b"):
        left.find_folder(name, "id").with_name(name).mkdir()
    found = list_ended_folders(left.store, left.settings)
    assert {folder.name: owner for owner, folder in found} == {
        f"trained-{trained.id}": trained,
        f"processed-1-{processed.id}": processed,
        f"{judged.name}-{trained.id}": judged,
    }
    assert all(folder.is_dir() for _, folder in found)


def test_a_folder_that_the_failure_reason_names_is_kept(left: Left) -> None:
    job = left.add_training_job("job", "Downloading")
    folder = left.find_folder("job", job.id)
    left.change(job, job.transition("Failed", 9_000, failure_reason=f"What the container left is kept in {folder}."))
    assert list_ended_folders(left.store, left.settings) == []
