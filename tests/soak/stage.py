"""One emulator on a persistent state folder, with a queue of all job events.

The folder survives the emulator's kills.
"""

import json
import os
from typing import Any, Self
from unittest.mock import patch
from urllib.request import urlopen

import boto3
from botocore.config import Config

from emulator.events.sent_messages import EVENT_BRIDGE, read_sent
from emulator.stop_handler.deployment import deploy_stop_handler
from sdk_compat.emulator_process import EmulatorProcess
from tests.soak.course import Course, is_true_within, list_processes_with
from tests.soak.small_job import BUCKET, find_wrong_end, stage_data
from tests.waiting import has_ended

_SECONDS = 240.0
_ACCOUNT = "123456789012"


class Stage:
    """The emulator of a course. Its port stays the same, since containers know it.

    Attributes:
        emulator: the one that runs, or was killed last.
        mark: is in the environment of every job's container, and of nothing else.
    """

    def __init__(self, course: Course, attempts: int = 1) -> None:
        """Start it; its clients send each request at most so often."""
        self._course, self._attempts = course, attempts
        self.state_dir = course.folder / "state"
        self.mark = f"soak-{os.getpid()}-{course.folder.name}"
        self._sent = 0
        self._clients: dict[str, Any] = {}
        self.emulator = self._launch(0)
        stage_data(self.client("s3"))
        deploy_stop_handler(self.client)
        self._queue = self.client("sqs").create_queue(QueueName="events")["QueueUrl"]
        pattern = json.dumps({"source": ["aws.sagemaker"]})
        self.client("events").put_rule(Name="events", EventPattern=pattern)
        target = {"Id": "queue", "Arn": f"arn:aws:sqs:us-east-1:{_ACCOUNT}:events"}
        self.client("events").put_targets(Rule="events", Targets=[target])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the emulator, and note what it leaves behind."""
        if self.emulator.process.poll() is not None:
            self.restart()
        code = self.emulator.stop()
        if code != 0:
            self._course.fail(self._course.seed, f"the emulator's exit code is {code}")
        left = [*list_processes_with(self.mark), *self._list_others()]
        if left:
            self._course.fail(self._course.seed, f"left behind by the emulator: {left}")

    def _launch(self, port: int) -> EmulatorProcess:
        # Tests set this variable for other emulators.
        with patch.dict(os.environ):
            os.environ.pop("SMDEBUG_EMULATOR_NO_WARM", None)
            warm = "" if self._course.starts == "warm" else None
            return EmulatorProcess(self.state_dir, runtime=self._course.runtime, port=port, warm=warm)

    def client(self, service: str) -> Any:
        """Return the client of a service, which sends each request once."""
        if service not in self._clients:
            make: Any = boto3.client
            self._clients[service] = make(
                service,
                endpoint_url=self.emulator.endpoint_url,
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",
                config=Config(retries={"total_max_attempts": self._attempts}, read_timeout=120),
            )
        return self._clients[service]

    def restart(self) -> None:
        """Start an emulator on the folder again; its predecessor was killed. Its log goes on in a file."""
        port, log = self.emulator.port, self.emulator.log_text()
        with (self._course.folder / "emulator.log").open("a") as file:
            file.write(log)
        self.emulator = self._launch(port)

    def read_log(self) -> str:
        """Return what the emulator that runs has logged."""
        return self.emulator.log_text()

    def describe(self, name: str) -> dict[str, Any] | None:
        """Describe a job; None where there is none of that name."""
        sagemaker = self.client("sagemaker")
        try:
            described: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        except sagemaker.exceptions.ClientError as error:
            if "not found" not in str(error):
                raise
            return None
        return described

    def wait_for_end(self, name: str) -> dict[str, Any]:
        """Wait until a job and its rules have ended, and all events are delivered; describe it."""
        sagemaker = self.client("sagemaker")

        def has_come_to_its_end() -> bool:
            return has_ended(sagemaker.describe_training_job(TrainingJobName=name))

        if not is_true_within(_SECONDS, has_come_to_its_end):
            raise AssertionError(f"{name} did not end: {self.describe(name)}")
        described = self.describe(name)
        assert described is not None
        return described

    def judge(self, seed: int, name: str, *, sick: bool, whole_log: bool = True) -> dict[str, Any]:
        """Wait for a job's end and note all that is wrong with it, its events and what it left."""
        job = self.wait_for_end(name)
        log, stored = self.read_job_log(name), self.list_objects(name)
        if wrong := find_wrong_end(job, log, sick=sick, stored=stored, whole_log=whole_log):
            self._course.fail(seed, f"{name} {wrong}\n{self.read_log()[-3000:]}")
        self.judge_events(seed, job)
        self.judge_remains(seed, name)
        return job

    def judge_events(self, seed: int, job: dict[str, Any] | None) -> None:
        """Note which events were lost, sent twice, or are missing for a stage of the job."""
        if not is_true_within(_SECONDS, lambda: self._read_health()["undeliveredEvents"] == 0):
            self._course.fail(seed, f"events are not delivered: {self._read_health()}")
        sent = [each for each in read_sent(self.state_dir / "jobs.sqlite", self._sent) if each.service == EVENT_BRIDGE]
        if sent:
            self._sent = sent[-1].sequence
        received = self._receive()
        expected = [each.content["id"] for each in sent]
        lost = [each.content for each in sent if each.content["id"] not in received]
        doubled = sorted(each for each in set(received) if received.count(each) > 1)
        if lost:
            self._course.fail(seed, f"events lost: {lost}")
        if doubled:
            self._course.fail(seed, f"events sent twice: {doubled}")
        if unknown := set(received) - set(expected):
            self._course.fail(seed, f"events of nothing that was stored: {unknown}")
        self._course.figures["events"] = f"{int(self._course.figures.get('events', '0')) + len(sent)}"
        if job is not None:
            stages = [each["Status"] for each in job["SecondaryStatusTransitions"]]
            told = [
                each.content["detail"]["SecondaryStatus"]
                for each in sent
                if each.content["detail"].get("TrainingJobName") == job["TrainingJobName"]
            ]
            once = [stage for number, stage in enumerate(told) if number == 0 or told[number - 1] != stage]
            if once != stages:
                self._course.fail(seed, f"stages {stages}, and events of {once}")

    def judge_remains(self, seed: int, name: str) -> None:
        """Note processes, containers and folders that outlast a job."""

        def list_remains() -> list[str]:
            return [*list_processes_with(f"{self.mark}-{name}"), *self.list_containers(), *self._list_folders()]

        if not is_true_within(_SECONDS, lambda: not list_remains()):
            self._course.fail(seed, f"left behind by {name}: {list_remains()}")

    def list_containers(self) -> list[str]:
        """List the containers of jobs, by name."""
        if self._course.runtime == "process":
            names = [path.name for path in (self.state_dir / "containers").glob("smdebug-*")]
        else:
            names = self._list_docker()
        return [name for name in names if not name.startswith(("smdebug-lambda-", "smdebug-spare-"))]

    def _list_folders(self) -> list[str]:
        return [str(path) for path in (self.state_dir / "jobs").glob("*")]

    def _list_others(self) -> list[str]:
        """What an emulator that ended has left: containers, or supervisors of them."""
        if self._course.runtime == "docker":
            return self._list_docker()
        return list_processes_with(str(self.state_dir / "containers"))

    def _list_docker(self) -> list[str]:
        import docker

        client = docker.from_env()
        try:
            listed = client.api.containers(all=True)
        finally:
            client.close()
        return [
            each["Names"][0].lstrip("/")
            for each in listed
            if any(str(mount.get("Source", "")).startswith(str(self.state_dir)) for mount in each.get("Mounts", ()))
        ]

    def list_objects(self, name: str) -> set[str]:
        """List the keys that a job has stored, from its own name on."""
        s3 = self.client("s3")
        keys: set[str] = set()
        for prefix in ("output", "tensors"):
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/{name}/")
            keys |= {each["Key"].split("/", 2)[2] for page in pages for each in page.get("Contents", ())}
        return keys

    def read_job_log(self, name: str) -> list[str]:
        """Return what the job's container has printed, line by line."""
        logs, group = self.client("logs"), "/aws/sagemaker/TrainingJobs"
        streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{name}/")["logStreams"]
        lines = []
        for stream in streams:
            events = logs.get_log_events(
                logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True, limit=10_000
            )
            lines += [event["message"] for event in events["events"]]
        return lines

    def _receive(self) -> list[str]:
        """Take every message from the queue; the ids of the events."""
        sqs, found = self.client("sqs"), []
        while messages := sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(message["Body"])["id"] for message in messages]
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(messages)
            ]
            sqs.delete_message_batch(QueueUrl=self._queue, Entries=entries)
        return found

    def _read_health(self) -> dict[str, Any]:
        with urlopen(f"{self.emulator.endpoint_url}/_emulator/health") as answer:
            health: dict[str, Any] = json.load(answer)
        return health
