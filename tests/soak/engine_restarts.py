"""Soak: a Docker engine killed and restarted at random moments of a job.

The job has a hook, a rule and a stop handler.
"""

import signal
import tempfile
import time
from contextlib import closing
from pathlib import Path
from random import Random

from container_runtime.docker.images.local_images import missing_images
from container_runtime.images.catalogue import ImageCatalogue
from tests.soak.course import Course
from tests.soak.small_job import IMAGE, build_job
from tests.soak.stage import Stage
from tests.swarm_nodes import EngineNodes

LONG, SHORT = 50, 2
RUNTIMES = ("docker",)
_IMAGES = (f"smdebug-emulator/{IMAGE}", "smdebug-emulator/lambda:latest")
# How long an engine stays away, at most.
_AWAY_SECONDS = 3.0
_SIGNALS = (signal.SIGTERM, signal.SIGKILL)


def run(course: Course) -> None:
    """End the engine once in each round, by each signal in turn."""
    # A short name, since sockets are in the folder.
    with tempfile.TemporaryDirectory(prefix="smd-") as parent:
        # An engine that ends by itself unmounts what lies in its folder: a linked image would be empty afterwards.
        engines = EngineNodes(Path(parent) / "engine", 1, in_memory=True, linked=None)
        engines.start()
        try:
            engines.load(*_IMAGES)
            with engines.reached():
                with closing(engines.nodes[0].connect()) as api:
                    # The others have to be there, and none of them runs.
                    for missing in missing_images(api, ImageCatalogue()):
                        api.tag(_IMAGES[0], missing)
                with Stage(course, attempts=5) as stage:
                    _Restarts(course, engines, stage).run()
        finally:
            engines.stop()


class _Restarts:
    def __init__(self, course: Course, engines: EngineNodes, stage: Stage) -> None:
        self._course, self._engines, self._stage = course, engines, stage
        # How long each kind of job takes here: the end comes at any moment of that.
        self._seconds: dict[bool, float] = {}
        self._began_again = 0

    def run(self) -> None:
        for sick in (True, False):
            began, name = time.monotonic(), f"undisturbed-{sick}".lower()
            self._create(name, sick=sick)
            self._stage.wait_for_end(name)
            self._seconds[sick] = time.monotonic() - began
            self._stage.judge(self._course.seed, name, sick=sick)
        found: dict[str, int] = {}
        for seed, random in self._course.draw_rounds():
            with self._course.noting(seed):
                was = self._run_round(seed, random, _SIGNALS[seed % 2], sick=seed // 2 % 2 == 0)
                found[was] = found.get(was, 0) + 1
            figures = self._course.figures
            figures["ended by"] = ", ".join(f"{each} {count}" for each, count in sorted(found.items()))
            figures["trainings begun again"] = str(self._began_again)

    def _run_round(self, seed: int, random: Random, number: signal.Signals, *, sick: bool) -> str:
        """Create a job, end the engine and start it again; return by what, and in which stage of the job."""
        name, engine = f"restart-{seed}", self._engines.nodes[0]
        self._create(name, sick=sick)
        time.sleep(random.uniform(0.0, self._seconds[sick]))
        found = self._stage.describe(name)
        assert found is not None
        self._engines.end_engine(engine, number)
        time.sleep(random.uniform(0.0, _AWAY_SECONDS))
        self._engines.start_engine(engine)
        self._engines.await_engine(engine)
        # What a container prints while no engine reads it is lost with the engine that was killed.
        job = self._stage.judge(seed, name, sick=sick, whole_log=number is signal.SIGTERM)
        self._began_again += sum(each["Status"] == "Restarting" for each in job["SecondaryStatusTransitions"])
        with closing(engine.connect()) as api:
            networks = {each["Name"] for each in api.networks()} - {"bridge", "host", "none"}
        if networks:
            self._course.fail(seed, f"networks left behind by {name}: {networks}")
        return f"{number.name} in {found['SecondaryStatus']}"

    def _create(self, name: str, *, sick: bool) -> None:
        request = build_job(name, sick=sick, environment={"SOAK": f"{self._stage.mark}-{name}"})
        self._stage.client("sagemaker").create_training_job(**request)
