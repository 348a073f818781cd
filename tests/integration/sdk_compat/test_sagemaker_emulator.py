"""Tests of the public module: an emulator for a with statement, and a decorator.

Those of this process are forks; subprocesses start theirs as users do.
"""

import asyncio
import os
import subprocess
import sys
import unittest
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

import smdebug_emulator
from sdk_compat.demo.training_job import build_rule, build_script_mode, build_training_job, stage_source
from sdk_compat.process_environment import ProcessEnvironment
from smdebug_emulator import SageMakerEmulator, TrainingJob, mock_sagemaker
from tests.forked_emulator import ForkedEmulator
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# It writes what a training would: test_pytest_plugin.py asks of a training's job.
SCRIPT = """
import numpy as np

from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter

collections = CollectionManager()
collections.get("gradients").tensor_names.add("gradient/Linear_weight")
collections.set_num_workers(1)
collections.export("/opt/ml/output/tensors", "worker_0_collections.json")
for step in range(4):
    with FileWriter("/opt/ml/output/tensors", "worker_0", step) as writer:
        writer.write_tensor(np.full((1, 3), 1e-8, "float32"), "gradient/Linear_weight")
"""
JOB = "of-a-with-statement"


@pytest.fixture(scope="module", autouse=True)
def forked() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sdk_compat.sagemaker_emulator.EmulatorProcess", ForkedEmulator)
        yield


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SageMakerEmulator]:
    """One with a job, of whose rules one fires; clients of the process are led to it only while a test asks."""
    script = tmp_path_factory.mktemp("source") / "train.py"
    script.write_text(SCRIPT)
    with SageMakerEmulator(runtime="process") as started:
        bucket = started.make_bucket("bucket")
        source = stage_source(boto3.client("s3"), "script", [script], bucket)
        request = build_training_job(
            JOB,
            image="pytorch-training:2.13.0-cpu-py311",
            hyperparameters=build_script_mode(source, "train.py", {}),
            channels=(),
            collections={"gradients": {"save_interval": "1"}},
            rules=[
                build_rule("VanishingGradient", threshold="1e9"),
                build_rule("TensorVariance", collection_names="gradient", max_threshold="1"),
            ],
            bucket=bucket,
        )
        boto3.client("sagemaker").create_training_job(**request)
        started.restore()
        yield started


def test_jobs_are_waited_for_judged_and_opened(emulator: SageMakerEmulator) -> None:
    assert emulator.wait(JOB, "Completed")["TrainingJobName"] == JOB
    assert emulator.wait_for_rules(JOB) == {"VanishingGradient": "IssuesFound", "TensorVariance": "NoIssuesFound"}
    emulator.assert_rule(JOB, "VanishingGradient", "IssuesFound")
    with pytest.raises(AssertionError, match=r"(?s)is IssuesFound, not NoIssuesFound.*RuleEvaluationConditionMet"):
        emulator.assert_rule(JOB, "VanishingGradient", "NoIssuesFound")
    emulator.lead()
    try:
        trial = emulator.open_trial(JOB)
        assert trial.steps() == TrainingJob(JOB).trial.steps() == [0, 1, 2, 3]
        shown = {repr(trial.tensor(name)) for name in trial.tensor_names(collection="gradients")}
        assert "<Tensor gradient/Linear_weight: 4 steps, 0 to 3; shape (1, 3), float32>" in shown
    finally:
        emulator.restore()
    with pytest.raises(ConnectionError, match="%load_ext"):
        _ = TrainingJob(JOB, emulator.endpoint_url).trial


def test_a_job_that_does_not_exist_has_no_trial(emulator: SageMakerEmulator) -> None:
    for ask in (emulator.open_trial, emulator.wait_for_rules):
        with pytest.raises(AssertionError, match=r"'nobody' cannot be described in us-east-1: Requested resource not"):
            ask("nobody")


def test_the_environment_is_as_it_was_afterwards(emulator: SageMakerEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    boto3.setup_default_session(aws_access_key_id="of", aws_secret_access_key="before", region_name="eu-west-1")
    monkeypatch.setenv("AWS_PROFILE", "of-the-user")
    before = dict(os.environ)
    emulator.lead()
    assert ":assumed-role/smdebug-emulator/" in boto3.client("sts").get_caller_identity()["Arn"]
    emulator.restore()
    assert dict(os.environ) == before
    assert boto3.DEFAULT_SESSION is None


@pytest.mark.nightly  # by day test_clients.py has the session of version 2, and clients/test_sagemaker_v3.py that of 3
def test_a_session_is_of_the_sdk_that_is_installed(
    emulator: SageMakerEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_SUPPRESS_V2_WARNING", "1")
    session = emulator.open_sagemaker_session()
    assert type(session).__module__ == "sagemaker.session"
    assert session.default_bucket() == "sagemaker-us-east-1-123456789012"


def test_it_ends_with_its_statement_and_leaves_no_folder() -> None:
    """Buckets that it makes are in the region of its clients."""
    started = SageMakerEmulator(runtime="process", warm=None, region="eu-west-1")

    def use_it() -> None:
        with started:
            started.make_bucket("of-the-region")
            started.reset()
            place = started.client("s3").get_bucket_location(Bucket="of-the-region")
            raise RuntimeError(f"of the block, in {place['LocationConstraint']}")

    with pytest.raises(RuntimeError, match="of the block, in eu-west-1"):
        use_it()
    started.stop()
    assert not started.is_running
    assert not started.state_dir.parent.exists()


def test_a_folder_that_is_kept_is_all_that_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with SageMakerEmulator(runtime="process", warm=None, state_dir=tmp_path / "kept") as started:
        assert count_buckets() == 0
    assert not started.is_running
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "kept.log"]


def test_a_command_s_emulator_takes_its_clients_files_with_it(tmp_path: Path) -> None:
    kept, cache, temporary = (tmp_path / name for name in ("kept", "cache", "temporary"))
    temporary.mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(temporary)}
    command = [sys.executable, "-P", "-m", "emulator", "run", "--runtime", "process", "--state-dir", str(kept), "--"]
    source = "import boto3, os; boto3.client('s3').list_buckets(); print(os.environ['AWS_CONFIG_FILE'])"
    done = subprocess.run(
        [*command, sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(temporary)
    wait_until(lambda: not list(temporary.iterdir()))
    assert not (cache / "smdebug-emulator" / "clients").exists()


def test_it_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    source = (
        "import os, signal\nfrom smdebug_emulator import SageMakerEmulator\n"
        "emulator = SageMakerEmulator('process', warm=None)\n"
        "print(emulator._process.process.pid, emulator.state_dir.parent, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    told = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, cwd=tmp_path)
    pid, folder = told.stdout.split()
    wait_until(lambda: not Path(f"/proc/{pid}").exists() and not Path(folder).exists())


def count_buckets() -> int:
    assert os.environ["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    return len(boto3.client("s3").list_buckets()["Buckets"])


@mock_sagemaker(runtime="process", warm=None)
def make_bucket(name: str) -> int:
    """The buckets that there were before."""
    found = count_buckets()
    boto3.client("s3").create_bucket(Bucket=name)
    return found


@mock_sagemaker(runtime="process", warm=None)
async def make_bucket_later(name: str) -> int:
    await asyncio.sleep(0)
    return make_bucket(name)


@pytest.fixture
@mock_sagemaker(runtime="process", warm=None)
def buckets_before() -> Iterator[int]:
    yield make_bucket("of-a-fixture")
    assert count_buckets() == 2, "the test's bucket is there until the fixture has ended"


@contextmanager
@mock_sagemaker(runtime="process", warm=None)
def having_bucket(caught: list[int]) -> Iterator[int]:
    make_bucket("of-a-block")
    try:
        yield count_buckets()
    except KeyError:
        caught.append(count_buckets())


@asynccontextmanager
@mock_sagemaker(runtime="process", warm=None)
async def having_bucket_later(caught: list[int]) -> AsyncIterator[int]:
    await make_bucket_later("of-a-block")
    try:
        yield count_buckets()
    except KeyError:
        caught.append(count_buckets())


@mock_sagemaker(runtime="process", warm=None)
async def count_up(closed: list[int]) -> AsyncIterator[int]:
    try:
        while True:
            yield make_bucket(f"bucket-{count_buckets()}")
    finally:
        closed.append(count_buckets())


@mock_sagemaker(runtime="process", warm=None)
class Plain:
    def test_it(self) -> int:
        return make_bucket("inner") + count_buckets()

    @staticmethod
    def test_static() -> int:
        return make_bucket("static")

    @classmethod
    def test_of_class(cls) -> int:
        return make_bucket(f"of-{cls.__name__.lower()}")

    def helper(self) -> str | None:
        return os.environ.get("AWS_ENDPOINT_URL")


@mock_sagemaker(runtime="process", warm=None)
class Case(unittest.TestCase):
    __test__ = False  # pytest would run it a second time

    def setUp(self) -> None:
        boto3.client("s3").create_bucket(Bucket="of-set-up")

    def test_it(self) -> None:
        assert count_buckets() == 1

    def test_it_again(self) -> None:
        assert count_buckets() == 1


def test_a_decorated_call_has_an_empty_emulator() -> None:
    assert [make_bucket("of-a-call"), make_bucket("of-a-call"), asyncio.run(make_bucket_later("later"))] == [0, 0, 0]
    assert "AWS_ENDPOINT_URL" not in os.environ


def test_a_fixture_that_yields_has_it_until_it_ends(buckets_before: int) -> None:
    assert buckets_before == 0
    make_bucket("of-the-test")


def test_an_error_of_the_block_reaches_a_decorated_generator() -> None:
    caught: list[int] = []
    with having_bucket(caught) as found:
        assert count_buckets() == 1
        raise KeyError

    async def run() -> int:
        async with having_bucket_later(caught) as later:
            assert count_buckets() == 1
            raise KeyError
        return later

    assert (found, asyncio.run(run()), caught) == (1, 1, [1, 1])
    assert "AWS_ENDPOINT_URL" not in os.environ


def test_a_decorated_asynchronous_generator_that_is_closed_has_it_to_its_end() -> None:
    closed: list[int] = []

    async def run() -> list[int]:
        generator = count_up(closed)
        found = [await anext(generator), await anext(generator)]
        await generator.aclose()  # type: ignore[attr-defined]
        return found

    assert (asyncio.run(run()), closed) == ([0, 1], [2])
    assert "AWS_ENDPOINT_URL" not in os.environ


def test_a_folder_to_keep_is_refused(tmp_path: Path) -> None:
    options: Any = {"state_dir": tmp_path}
    with pytest.raises(TypeError, match="takes no state_dir: it deletes all jobs"):
        mock_sagemaker(**options)


def test_methods_of_a_decorated_class_have_it() -> None:
    assert Plain().test_it() == 1, "the emulator is emptied when the outermost call ends"
    assert (Plain().test_static(), Plain().test_of_class(), Plain.test_of_class()) == (0, 0, 0)
    assert Plain().helper() is None
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.failures + result.errors) == (2, [])


def test_a_rule_that_judged_nothing_is_no_proof(emulator: SageMakerEmulator) -> None:
    emulator.assert_rule(JOB, "TensorVariance", "NoIssuesFound", may_judge_nothing=True)
    said = r"(?s)but it judged nothing\. Its details .*no collection gradient\. Did you mean gradients\?"
    with pytest.raises(AssertionError, match=said):
        emulator.assert_rule(JOB, "TensorVariance", "NoIssuesFound")


def test_a_mistake_is_named() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Emulator'"):
        _ = smdebug_emulator.Emulator
    assert "mock_sagemaker" in dir(smdebug_emulator)
    with pytest.raises(smdebug_emulator.EmulatorStartError, match=r"\AInvalid value .*'nowhere' is not a"):
        SageMakerEmulator(runtime="nowhere")
    assert not ProcessEnvironment().is_led
