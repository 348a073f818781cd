"""Tests of a user's own image that contains our package.

It is built on a base of the user's choice, a job trains in it, and its tensors are read.
"""

import os
import re
import shutil
import tarfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import numpy as np
import pytest

from container_runtime.docker.images.image_build import plan_builds
from container_runtime.images.catalogue import ImageCatalogue, local_name
from container_runtime.images.wheelhouse import fetch_wheels
from examples.frameworks.job import BUCKET, build_request, stage_scripts
from sdk_compat.demo.training_job import stage_source
from smdebug import modes
from smdebug.trials import create_trial
from tests.end_to_end.finished_jobs import download_run, read_log, wait_until_ended
from tests.end_to_end.test_pytorch import Job
from tests.running_emulator import CONTAINERS, RunningEmulator
from tests.waiting import wait_until
from tests.wheel import build_wheel

CHECKOUT = Path(__file__).parents[2]
EXAMPLE = CHECKOUT / "examples" / "custom_container"
IMAGE = "digits-of-my-own"
ACCOUNT = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


@pytest.fixture(scope="module", params=CONTAINERS)
def of_containers(
    request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]
) -> Iterator[RunningEmulator]:
    running = start_emulator(request.param)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def custom_image(of_containers: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Built as the example's README says, on the requirements of our PyTorch image, which has no smdebug."""
    context = tmp_path_factory.mktemp("custom") / "context"
    shutil.copytree(EXAMPLE, context, ignore=shutil.ignore_patterns("wheels", "__pycache__"))
    wheels = context / "wheels"
    wheels.mkdir()
    shutil.copy2(build_wheel(context.with_name("built")), wheels)
    fetched = fetch_wheels(["numpy>=2.4,<3", "crc32c>=2.7"], CHECKOUT / ".cache")
    for wheel in fetched.glob("*.whl"):
        shutil.copy2(wheel, wheels)
    (base,) = (build.base for build in plan_builds(ImageCatalogue()) if build.definition.name == "pytorch-training")
    tag = f"{IMAGE}:{uuid.uuid4().hex[:8]}"
    client = docker.from_env()
    try:
        client.images.build(
            path=str(context), tag=tag, buildargs={"BASE": base}, network_mode="none", rm=True, forcerm=True
        )
        yield tag
        client.images.remove(tag, force=True)
    finally:
        client.close()


TRAIN = """
import json, pathlib, sys
import steps  # another file of the image's, beside this one
ml = pathlib.Path("/opt/ml")
print(sorted(path.name for path in ml.iterdir()), sys.argv[1:], flush=True)
for name in ("code/written-beside-it", "written-above-it"):
    (ml / name).write_text("x")
if not (ml / "model").is_dir():
    (ml / "processing/output/result").write_text(steps.RESULT)
elif (ml / "input/config/hyperparameters.json").read_text().strip() == "{}":
    (ml / "model/weights").write_text(steps.RESULT)
else:
    (ml / "output/failure").write_text(f"the image's reason: {steps.RESULT}")
    sys.exit(1)
"""


@pytest.fixture(scope="module")
def image_with_code(of_containers: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Built as AWS's pages say: its program lies in /opt/ml/code."""
    context = tmp_path_factory.mktemp("image-with-code")
    (context / "train.py").write_text(TRAIN)
    (context / "steps.py").write_text("RESULT = 'from the image'\n")
    (context / "weights").write_text("of another training")
    found = ImageCatalogue().find("sagemaker-debugger-rules:latest")
    assert found is not None
    (context / "Dockerfile").write_text(
        f"FROM {local_name(found[0])}\n"
        "COPY train.py steps.py /opt/ml/code/\n"
        "COPY weights /opt/ml/model/\n"
        'ENTRYPOINT ["python3", "/opt/ml/code/train.py"]\n'
    )
    tag = f"image-with-code:{uuid.uuid4().hex[:8]}"
    client = docker.from_env()
    try:
        client.images.build(path=str(context), tag=tag, network_mode="none", rm=True, forcerm=True)
        yield tag
        client.images.remove(tag, force=True)
    finally:
        client.close()


def test_a_program_in_the_images_own_opt_ml_trains(
    of_containers: RunningEmulator, image_with_code: str, tmp_path: Path
) -> None:
    stage_scripts(of_containers.client("s3"), "pytorch")
    sagemaker = of_containers.client("sagemaker")
    described = {}
    for parameters in ({}, {"fail": "1"}):
        name = f"custom-{uuid.uuid4().hex[:8]}"
        request = build_request("pytorch", name, "")
        request["AlgorithmSpecification"] = {"TrainingImage": image_with_code, "TrainingInputMode": "File"}
        request["HyperParameters"] = parameters
        del request["DebugHookConfig"]
        sagemaker.create_training_job(**request)
        ended = described[bool(parameters)] = wait_until_ended(of_containers, name)
        log = read_log(of_containers, name)
        assert log.splitlines()[-1] == "['checkpoints', 'code', 'input', 'model', 'output'] ['train']", (ended, log)
    assert described[False]["TrainingJobStatus"] == "Completed"
    bucket, _, key = described[False]["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").partition("/")
    of_containers.client("s3").download_file(bucket, key, str(tmp_path / "model.tar.gz"))
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        assert [member.name for member in tar if member.isfile()] == ["weights"]
        weights = tar.extractfile("weights")
        assert weights is not None
        assert weights.read() == b"from the image", "the image's own were hidden"
    assert "the image's reason: from the image" in described[True]["FailureReason"]


@pytest.mark.nightly  # the contract has a program below a mount, and the test above one that trains
def test_a_program_in_the_images_own_opt_ml_processes(of_containers: RunningEmulator, image_with_code: str) -> None:
    stage_scripts(of_containers.client("s3"), "pytorch")
    sagemaker, name = of_containers.client("sagemaker"), f"custom-{uuid.uuid4().hex[:8]}"
    output = {"S3Uri": f"s3://{BUCKET}/{name}", "LocalPath": "/opt/ml/processing/output", "S3UploadMode": "EndOfJob"}
    # The image's own /opt/ml/model is seen in a container that the service gives no model to.
    script = "rm -r /opt/ml/model && exec python3 /opt/ml/code/train.py"
    sagemaker.create_processing_job(
        ProcessingJobName=name,
        AppSpecification={"ImageUri": image_with_code, "ContainerEntrypoint": ["sh", "-c", script]},
        RoleArn="arn:aws:iam::123456789012:role/Processing",
        ProcessingResources={"ClusterConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}},
        ProcessingOutputConfig={"Outputs": [{"OutputName": "output", "S3Output": output}]},
    )
    sagemaker.get_waiter("processing_job_completed_or_stopped").wait(
        ProcessingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 200}
    )
    content = of_containers.client("s3").get_object(Bucket=BUCKET, Key=f"{name}/result")["Body"].read()
    assert content == b"from the image"


def test_an_image_that_writes_elsewhere_gets_a_hint(of_containers: RunningEmulator) -> None:
    """It is root on AWS, and may write everywhere."""
    stage_scripts(of_containers.client("s3"), "pytorch")
    name = f"custom-{uuid.uuid4().hex[:8]}"
    request = build_request("pytorch", name, "")
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["sh", "-c", "id -u > /tmp/x && echo x > /usr/x"]
    of_containers.client("sagemaker").create_training_job(**request)
    assert "/usr/x" in wait_until_ended(of_containers, name)["FailureReason"]
    (hint,) = (line for line in read_log(of_containers, name).splitlines() if "refused to the container" in line)
    assert "--writable-root, or as root with --container-user root" in hint


@pytest.mark.nightly  # integration/emulator/jobs/runs/test_volume.py has the job, unit/container_runtime the sizes
def test_a_container_that_fills_its_volume_is_ended(of_containers: RunningEmulator) -> None:
    """What is allocated and never written takes no time; /tmp is of the volume, too, unless folders are carried."""
    stage_scripts(of_containers.client("s3"), "pytorch")
    name = f"custom-{uuid.uuid4().hex[:8]}"
    request = build_request("pytorch", name, "")
    carried = of_containers.read_runtime() == "swarm" and "SMDEBUG_EMULATOR_SHARED_FOLDER" not in os.environ
    rest = "/opt/ml/output/rest" if carried else "/tmp/rest"
    fill = f"fallocate -l 600M /opt/ml/model/half && fallocate -l 500M {rest} && sleep 500"
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["sh", "-c", fill]
    request["ResourceConfig"]["VolumeSizeInGB"] = 1
    of_containers.client("sagemaker").create_training_job(**request)
    reason = wait_until_ended(of_containers, name)["FailureReason"]
    # Carried, it is ended before all of it has come.
    assert re.match(r"AlgorithmError: No space left on device: the job wrote 1\.0\d GiB to its volume, and ", reason)
    assert "ResourceConfig.VolumeSizeInGB is 1." in reason


@pytest.mark.parametrize("runtime", CONTAINERS)
def test_a_container_may_be_root_and_write_everywhere(
    runtime: str, start_emulator: Callable[..., RunningEmulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on AWS; it saves no file that the emulator could not read, and leaves none."""
    monkeypatch.setenv("SMDEBUG_EMULATOR_CONTAINER_USER", "root")
    monkeypatch.setenv("SMDEBUG_EMULATOR_WRITABLE_ROOT", "1")
    emulator = start_emulator(runtime)
    stage_scripts(emulator.client("s3"), "pytorch")
    name = f"custom-{uuid.uuid4().hex[:8]}"
    request = build_request("pytorch", name, "")
    write = "id -u && echo x > /usr/x && cat /usr/x && echo weights > /opt/ml/model/w && chmod 0 /opt/ml/model/w"
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["sh", "-c", write]
    emulator.client("sagemaker").create_training_job(**request)
    description = wait_until_ended(emulator, name)
    assert description["TrainingJobStatus"] == "Completed", description
    lines = read_log(emulator, name).splitlines()
    assert [line for line in lines if not line.startswith("smdebug-emulator: ")] == ["0", "x"]
    bucket, _, key = description["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").partition("/")
    assert emulator.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] > 0
    assert emulator.stop() == 0
    assert list((emulator.state_dir / "jobs").glob("*")) == []


# By day, the test of an image that replaces one of the catalogue captures a training, and test_wheel.py has the wheel.
@pytest.mark.nightly
def test_a_custom_image_is_captured(of_containers: RunningEmulator, custom_image: str, tmp_path: Path) -> None:
    stage_scripts(of_containers.client("s3"), "pytorch")
    name = f"custom-{uuid.uuid4().hex[:8]}"
    request = build_request("pytorch", name, "")
    request["AlgorithmSpecification"]["TrainingImage"] = custom_image
    request["HyperParameters"] = {"steps": "101", "learning-rate": "0.02"}
    request["DebugHookConfig"]["HookParameters"] = {"save_interval": "20"}
    of_containers.client("sagemaker").create_training_job(**request)
    description = wait_until_ended(of_containers, name)
    assert description["TrainingJobStatus"] == "Completed", (description, read_log(of_containers, name))
    job = Job(of_containers, description, tmp_path)
    wait_until(lambda: job.log.count("accuracy=") == 6, "the last lines of the log")
    logged = {int(step): float(loss) for step, loss in re.findall(r"step=(\d+) loss=([\d.e-]+) ", job.log)}
    assert float(re.findall(r"accuracy=([\d.]+);", job.log)[-1]) > 0.9
    trial = job.trial
    assert trial.steps() == list(logged) == [0, 20, 40, 60, 80, 100]
    assert description["ModelArtifacts"]["S3ModelArtifacts"].startswith(f"s3://{BUCKET}/")
    for step, loss in logged.items():
        assert trial.tensor("cross_entropy_loss_output_0").value(step) == np.float32(loss)
    assert set(job.state_dict) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    for path, value in job.state_dict.items():
        assert trial.tensor(f"gradient/Sequential_{path}").value(100).shape == value.shape
        # One step of Adam moves no number by more than about its learning rate.
        np.testing.assert_allclose(trial.tensor(f"Sequential_{path}").value(100), value.numpy(), atol=0.03)


# As AWS's images are: without this project's smdebug, and without what it needs.
WITHOUT_SMDEBUG = """
FROM smdebug-emulator/pytorch-training:latest
USER root
RUN rm -rf /opt/venv/lib/python3.11/site-packages/smdebug* /opt/venv/lib/python3.11/site-packages/crc32c*
ENV OF_MY_OWN=yes
"""
SHOW = """
import importlib.util, os, runpy, sys
found = importlib.util.find_spec("smdebug")
print("IMAGE", os.environ.get("OF_MY_OWN"), found and found.origin)
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py"), run_name="__main__")
"""


# With a toolkit and a smdebug of its own.
WITH_ITS_OWN = r"""
RUN mkdir /opt/venv/lib/python3.11/site-packages/smdebug \
 && echo "WHOSE = 'the image has its own'" > /opt/venv/lib/python3.11/site-packages/smdebug/__init__.py \
 && printf '#!/bin/sh\necho the toolkit of the image; env; ls /opt\n' > /opt/venv/bin/train \
 && echo 'exec python -c "import smdebug; print(smdebug.WHOSE)"' >> /opt/venv/bin/train
"""


@pytest.fixture(params=[WITHOUT_SMDEBUG])
def image_of_ones_own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "Dockerfile").write_text(request.param)
    tag = f"my/dlc-{uuid.uuid4().hex[:8]}:2.3"
    client = docker.from_env()
    try:
        client.images.build(path=str(tmp_path), tag=tag, network_mode="none", rm=True, forcerm=True)
        yield tag
        client.images.remove(tag, force=True)
    finally:
        client.close()


@pytest.mark.docker
def test_a_custom_image_replaces_one_of_the_catalogue(image_of_ones_own: str, tmp_path: Path) -> None:
    given = ["--image", f"pytorch-training:2.3={image_of_ones_own}"]
    with RunningEmulator(tmp_path / "state", runtime="docker", arguments=given) as emulator:
        s3 = emulator.client("s3")
        stage_scripts(s3, "pytorch")
        (tmp_path / "show.py").write_text(SHOW)
        train = CHECKOUT / "examples/frameworks/pytorch/train.py"
        stage_source(s3, "pytorch", [tmp_path / "show.py", train], BUCKET)
        name = f"own-{uuid.uuid4().hex[:8]}"
        request = build_request("pytorch", name, "show.py", epochs=2)
        request["AlgorithmSpecification"]["TrainingImage"] = f"{ACCOUNT}/pytorch-training:2.3.0-cpu-py311"
        emulator.client("sagemaker").create_training_job(**request)
        description = wait_until_ended(emulator, name)
        log = read_log(emulator, name)
        assert description["TrainingJobStatus"] == "Completed", (description, log)
        run = download_run(emulator, BUCKET, name, tmp_path / "run")
    assert "IMAGE yes /opt/smdebug-emulator/smdebug/__init__.py" in log
    assert f"{image_of_ones_own}, which --image names, runs in its place." in log
    trial = create_trial(str(run))
    assert trial.steps(mode=modes.TRAIN) == [0]
    assert trial.tensor_names(collection="losses")
    assert trial.tensor("Sequential_1.weight").value(0).shape == (8, 1, 3, 3)


@pytest.mark.docker
@pytest.mark.parametrize("image_of_ones_own", [WITHOUT_SMDEBUG + WITH_ITS_OWN], indirect=True)
def test_an_image_keeps_its_own_smdebug_where_none_is_to_be_added(image_of_ones_own: str, tmp_path: Path) -> None:
    given = ["--no-smdebug", "--image", f"pytorch-training={image_of_ones_own}"]
    with RunningEmulator(tmp_path / "state", runtime="docker", arguments=given) as emulator:
        stage_scripts(emulator.client("s3"), "pytorch")
        name = f"own-{uuid.uuid4().hex[:8]}"
        request = build_request("pytorch", name, "train.py", epochs=1)
        emulator.client("sagemaker").create_training_job(**request)
        description, log = wait_until_ended(emulator, name), read_log(emulator, name)
    assert description["TrainingJobStatus"] == "Completed", (description, log)
    assert "the toolkit of the image" in log
    assert "the image has its own" in log
    assert "/opt/smdebug-emulator" not in log, "no variable names our folder"
    assert "smdebug-emulator" not in log.splitlines(), "which is not below /opt"
