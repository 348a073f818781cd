"""Soak: jobs over three Swarm nodes, one of which loses its power.

The nodes share no disk, and every job comes to its right end.

A job has one host, or two, or fails, or saves tensors under a rule. Each container of a training says what it is and
when it lives, to S3; so it is seen whether two of one host ever lived at once.
"""

import io
import json
import tarfile
import tempfile
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from container_runtime.docker.images.local_images import missing_images
from container_runtime.images.catalogue import ImageCatalogue
from tests.soak.course import Course, is_true_within
from tests.soak.small_job import BUCKET, IMAGE, build_job, find_wrong_end
from tests.soak.stage import Stage
from tests.swarm_nodes import SwarmNodes
from tests.waiting import has_ended

# What is short of it is seen by the end-to-end tests of nodes that are lost.
LONG, SHORT = 200, 0
RUNTIMES = ("swarm",)
_IMAGES = (f"smdebug-emulator/{IMAGE}", "smdebug-emulator/lambda:latest")
_KINDS = {"one": 14, "two": 3, "fails": 2, "judged": 1}
"""How many of twenty jobs, in words of the names of jobs."""
_SECONDS = 1800.0
_SCRIPT = """
import os, pathlib, socket, sys, time, uuid
import boto3
s3, me = boto3.client("s3"), uuid.uuid4().hex
host, job = socket.gethostname(), os.environ["TRAINING_JOB_NAME"]
print("begins", me, flush=True)
beats = float(os.environ["SECONDS"]) / 0.25
for beat in range(int(beats)):
    s3.put_object(Bucket="BUCKET", Key=f"beats/{job}/{host}/{me}/{time.time()}", Body=b"")
    time.sleep(0.25)
if job.startswith("fails-"):
    sys.exit("as it was to")
pathlib.Path("/opt/ml/model", host).write_text(me)
""".replace("BUCKET", BUCKET)


def run(course: Course) -> None:
    """Create all jobs at once; end the third node when a third of them has ended, and never start it again."""
    with tempfile.TemporaryDirectory(prefix="smd-") as parent:  # a short name, since sockets are in the folder
        nodes = SwarmNodes(Path(parent) / "swarm", 3, in_memory=True)
        nodes.start()
        try:
            nodes.load(*_IMAGES)
            with nodes.reached(), closing(nodes.manager.connect()) as api:
                # The others have to be there, and none of them runs.
                for missing in missing_images(api, ImageCatalogue()):
                    api.tag(_IMAGES[0], missing)
                with Stage(course, attempts=5) as stage:
                    nodes.hide(course.folder)
                    _LostNode(course, nodes, stage).run()
                if left := [each["Spec"]["Name"] for each in api.services()]:
                    course.fail(course.seed, f"services are left: {left}")
        finally:
            nodes.stop()


class _LostNode:
    def __init__(self, course: Course, nodes: SwarmNodes, stage: Stage) -> None:
        self._course, self._nodes, self._stage = course, nodes, stage
        self._ended: dict[str, dict[str, Any]] = {}
        self._lost: list[str] = []

    def run(self) -> None:
        began, names = time.monotonic(), {}
        for seed, random in self._course.draw_rounds():
            (kind,) = random.choices(list(_KINDS), list(_KINDS.values()))
            names[f"{kind}-{seed}"] = seed
            self._create(f"{kind}-{seed}", kind, random)
        is_true_within(_SECONDS, lambda: self._count(names) >= len(names) // 3)
        is_true_within(_SECONDS, self._list_on_last)
        self._lost = self._list_on_last()
        self._nodes.kill(self._nodes.nodes[-1])
        is_true_within(_SECONDS, lambda: self._count(names) == len(names))
        seconds, ends, again = time.monotonic() - began, Counter[str](), 0
        for name, seed in names.items():
            with self._course.noting(seed):
                job = self._ended.get(name) or {"TrainingJobStatus": "not ended", "last": self._stage.describe(name)}
                if wrong := self._find_wrong(name, job):
                    self._course.fail(seed, f"{name}: {wrong}")
                ends[job["TrainingJobStatus"]] += 1
                again += any(each["Status"] == "Restarting" for each in job["SecondaryStatusTransitions"])
        self._stage.judge_events(self._course.seed, None)
        self._course.figures |= {
            "ends": ", ".join(f"{end} {count}" for end, count in sorted(ends.items())),
            "containers on the lost node": str(len(self._lost)),
            "begun again": str(again),
            "jobs a minute": f"{60 * len(names) / seconds:.1f}",
        }

    def _create(self, name: str, kind: str, random: Random) -> None:
        request = build_job(name, sick=False, environment={"SECONDS": f"{random.uniform(2.0, 4.0):.1f}"})
        if kind != "judged":
            for member in ("DebugRuleConfigurations", "DebugHookConfig", "InputDataConfig"):
                del request[member]
            request["HyperParameters"]["script"] = json.dumps(_SCRIPT)
        request["ResourceConfig"]["InstanceCount"] = 2 if kind == "two" else 1
        self._stage.client("sagemaker").create_training_job(**request)

    def _count(self, names: dict[str, int]) -> int:
        for name in names.keys() - self._ended.keys():
            job = self._stage.describe(name)
            assert job is not None
            if has_ended(job):
                self._ended[name] = job
        return len(self._ended)

    def _list_on_last(self) -> list[str]:
        with closing(self._nodes.nodes[-1].connect()) as api:
            labels = [each["Labels"] for each in api.containers()]
        services = [each["com.docker.swarm.service.name"] for each in labels]
        return [each for each in services if not each.startswith("smdebug-agent-")]

    def _find_wrong(self, name: str, job: dict[str, Any]) -> str | None:
        if name.startswith("judged"):
            return find_wrong_end(
                job, self._stage.read_job_log(name), sick=False, stored=self._stage.list_objects(name)
            )
        expected = "Failed" if name.startswith("fails") else "Completed"
        if job["TrainingJobStatus"] != expected:
            return str(job)
        lives = self._find_lives(name)
        for host in lives:
            spans = sorted(lives[host].values())
            for (_, end), (begin, _) in pairwise(spans):
                if begin < end:
                    return f"two containers of {host} lived at once: {lives[host]}"
        if expected == "Failed":
            reason = job["FailureReason"]
            return None if "as it was to" in reason else reason
        key = f"output/{name}/output/model.tar.gz"
        model = self._stage.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
        with tarfile.open(fileobj=io.BytesIO(model)) as tar:
            made = {each.name: tar.extractfile(each).read().decode() for each in tar if each.isfile()}  # type: ignore[union-attr]
        last = {host: max(spans, key=lambda one: spans[one]) for host, spans in lives.items()}
        return None if made == last else f"the model is of {made}, and those that lived last were {last}"

    def _find_lives(self, name: str) -> dict[str, dict[str, tuple[float, float]]]:
        """Find when each container of each host first and last said that it lived, by the one clock of all nodes."""
        found: dict[str, dict[str, tuple[float, float]]] = {}
        listing = self._stage.client("s3").get_paginator("list_objects_v2")
        for page in listing.paginate(Bucket=BUCKET, Prefix=f"beats/{name}/"):
            for each in page.get("Contents", ()):
                _, _, host, container, at = each["Key"].split("/")
                spans, now = found.setdefault(host, {}), float(at)
                first, last = spans.get(container, (now, now))
                spans[container] = min(first, now), max(last, now)
        return found
