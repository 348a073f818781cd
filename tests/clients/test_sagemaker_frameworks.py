"""Tests of the SageMaker SDK (version 2): other frameworks, pipelines, images.

The frameworks are those other than PyTorch, the images those that this project does not build.
"""

import json
import os
import subprocess
import sys
import uuid
from typing import Any

import pytest

from sdk_compat.environment import prepare_environment
from tests.running_emulator import RunningEmulator
from tests.small_wheel import write_wheel

TENSORFLOW = """
import argparse, json, os
import numpy as np
import strict_limits
import tensorflow as tf
parser = argparse.ArgumentParser()
parser.add_argument("--model_dir")
parser.add_argument("--epochs", type=int)
given = parser.parse_args()
tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(np.ones((16, 3), "float32"), np.ones((16, 1), "float32"), batch_size=4, epochs=given.epochs, verbose=0)
print("GOT", json.dumps(["tensorflow", strict_limits.LIMIT, given.model_dir.rpartition("/")[2]]))
"""
MXNET = """
import json, os
import mxnet as mx
import strict_limits
from mxnet import autograd, gluon
network = gluon.nn.Dense(1)
network.initialize()
trainer, loss = gluon.Trainer(network.collect_params(), "sgd"), gluon.loss.L2Loss()
for step in range(3):
    with autograd.record():
        value = loss(network(mx.nd.ones((4, 3))), mx.nd.ones((4, 1)))
    value.backward()
    trainer.step(4)
print("GOT", json.dumps(["mxnet", strict_limits.LIMIT, json.loads(os.environ["SM_HPS"])["rate"]]))
"""
SKLEARN = """
import json, os, pathlib
import joblib, numpy as np, sklearn, strict_limits
from sklearn.linear_model import LinearRegression
rows = np.loadtxt(pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "rows.csv"), delimiter=",")
model = LinearRegression(fit_intercept=json.loads(os.environ["SM_HPS"])["intercept"]).fit(rows[:, 1:], rows[:, 0])
joblib.dump(model, pathlib.Path(os.environ["SM_MODEL_DIR"], "model.joblib"))
print("GOT", json.dumps(["sklearn", strict_limits.LIMIT, len(model.coef_), sklearn.__version__]))
"""
HUGGING_FACE = """
import json, os
import strict_limits, torch
from transformers import BertConfig, BertForSequenceClassification
sizes = {"vocab_size": 20, "hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 8}
network = BertForSequenceClassification(BertConfig(**sizes, num_hidden_layers=1, num_attention_heads=2))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(json.loads(os.environ["SM_HPS"])["steps"]):
    optimizer.zero_grad()
    network(input_ids=torch.ones(2, 4, dtype=torch.long), labels=torch.tensor([0, 1])).loss.backward()
    optimizer.step()
print("GOT", json.dumps(["huggingface", strict_limits.LIMIT, network.config.num_labels]))
"""
XGBOOST = """
import json, os, pathlib
import numpy as np, strict_limits, xgboost
from sagemaker_xgboost_container import distributed
hosts, host = json.loads(os.environ["SM_HOSTS"]), os.environ["SM_CURRENT_HOST"]
rows = np.loadtxt(pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "rows.csv"), delimiter=",")


def train(rounds):
    xgboost.train({"nthread": 1}, xgboost.DMatrix(rows[:, 1:], rows[:, 0]), rounds)


distributed.wait_hostname_resolution(hosts)
distributed.rabit_run(train, {"rounds": 3}, True, hosts, host)
pathlib.Path("/opt/ml/checkpoints" if os.path.isdir("/opt/ml/checkpoints") else
             os.environ["SAGEMAKER_BASE_DIR"] + "/checkpoints", host).write_text("saved")
print("GOT", json.dumps(["xgboost", strict_limits.LIMIT, hosts.index(host)]))
"""
SCRIPT = """
import io, json, sys, time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from sagemaker import image_uris
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.estimator import Estimator
from sagemaker.huggingface import HuggingFace
from sagemaker.inputs import TrainingInput
from sagemaker.mxnet import MXNet
from sagemaker.processing import ProcessingInput, ProcessingOutput, ScriptProcessor
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session
from sagemaker.sklearn import SKLearn
from sagemaker.tensorflow import TensorFlow
from sagemaker.workflow.parameters import ParameterInteger
from sagemaker.workflow.pipeline import Pipeline
from sagemaker.workflow.pipeline_context import PipelineSession
from sagemaker.workflow.steps import ProcessingStep, TrainingStep
from sagemaker.xgboost import XGBoost

prefix, sources, kinds = sys.argv[1:]
session = Session()
bucket = session.default_bucket()
root = f"s3://{bucket}/{prefix}"
rows = np.random.default_rng(0).random((40, 4)).round(3)
np.savetxt("rows.csv", rows, delimiter=",", fmt="%.3f")
train = TrainingInput(session.upload_data("rows.csv", key_prefix=f"{prefix}/rows"), content_type="text/csv")
for name, text in json.loads(sources).items():
    Path(name).mkdir(exist_ok=True)
    Path(name, "train.py").write_text(text)
common = {"role": "arn:aws:iam::123456789012:role/Training", "instance_type": "ml.m5.large"}


def save(*collections):
    return DebuggerHookConfig(
        s3_output_path=f"{root}/tensors",
        collection_configs=[CollectionConfig(name, {"save_interval": "1"}) for name in collections],
    )


estimators = {
    "tensorflow": TensorFlow(
        entry_point="train.py", source_dir="tensorflow", framework_version="2.19.0", py_version="py312",
        instance_count=1, hyperparameters={"epochs": 1}, debugger_hook_config=save("losses", "weights"), **common,
    ),
    "mxnet": MXNet(
        entry_point="train.py", source_dir="mxnet", framework_version="1.9.0", py_version="py38", instance_count=1,
        hyperparameters={"rate": 0.5}, debugger_hook_config=save("losses"), **common,
    ),
    "sklearn": SKLearn(
        entry_point="train.py", source_dir="sklearn", framework_version="1.2-1", py_version="py3", instance_count=1,
        hyperparameters={"intercept": True}, **common,
    ),
    "huggingface": HuggingFace(  # the SDK knows its images for instances with GPUs only
        entry_point="train.py", source_dir="huggingface", transformers_version="4.56.2", pytorch_version="2.8.0",
        py_version="py312", instance_count=1, hyperparameters={"steps": 2},
        debugger_hook_config=save("losses", "weights"), **{**common, "instance_type": "ml.g4dn.xlarge"},
    ),
    "xgboost": XGBoost(
        entry_point="train.py", source_dir="xgboost", framework_version="3.0-5", instance_count=2,
        use_spot_instances=True, max_run=600, max_wait=900, checkpoint_s3_uri=f"{root}/checkpoints",
        debugger_hook_config=save("feature_importance"),
        rules=[Rule.sagemaker(rule_configs.feature_importance_overweight())], **common,
    ),
}
estimators = {kind: estimators[kind] for kind in kinds.split(",")}
names = {kind: f"{prefix}-{kind}" for kind in estimators}
for kind, estimator in estimators.items():
    estimator.fit({"train": train}, job_name=names[kind], wait=False)


# An algorithm of AWS's: CreateTrainingJob takes any image, and the job says what is wrong with this one.
unknown = image_uris.retrieve("knn", session.boto_region_name)
try:
    Estimator(image_uri=unknown, instance_count=1, **common).fit(
        {"train": train}, job_name=f"{prefix}-unknown", logs=False
    )
    found = {}
except UnexpectedStatusException as error:
    found = {"refused": str(error)}
local = PyTorch(
    entry_point="train.py", source_dir="xgboost", framework_version="2.8.0", py_version="py312", instance_count=1,
    **{**common, "instance_type": "local"},
)
found["local"] = [type(each).__name__ for each in (local.sagemaker_session, local.sagemaker_session.sagemaker_client)]

# A pipeline: its second step, the algorithm itself, trains on what the first made.
inner = PipelineSession()
count = ParameterInteger("Instances", default_value=2)
algorithm = image_uris.retrieve("xgboost", session.boto_region_name, "3.0-5")
split = ScriptProcessor(
    image_uri=algorithm, command=["python3"], instance_count=count, sagemaker_session=inner, **common
)
first = ProcessingStep(
    "Split",
    step_args=split.run(
        code="split/train.py", inputs=[ProcessingInput(source=f"{root}/rows", destination="/opt/ml/processing/input")],
        outputs=[ProcessingOutput(output_name="train", source="/opt/ml/processing/train")],
    ),
)
made = first.properties.ProcessingOutputConfig.Outputs["train"].S3Output.S3Uri
trainer = Estimator(
    image_uri=algorithm, instance_count=count, sagemaker_session=inner, output_path=f"{root}/pipeline",
    hyperparameters={"num_round": 3, "objective": "reg:squarederror"}, debugger_hook_config=save("metrics"), **common,
)
second = TrainingStep("Train", step_args=trainer.fit({"train": TrainingInput(made, content_type="text/csv")}))
pipeline = Pipeline(f"{prefix}-pipeline", parameters=[count], steps=[first, second], sagemaker_session=inner)
pipeline.upsert(role_arn=common["role"])
execution = pipeline.start({"Instances": 1})
execution.wait(delay=1, max_attempts=500)
steps = {step["StepName"]: step for step in execution.list_steps()}
found["pipeline"] = {name: step["StepStatus"] for name, step in steps.items()}
names["built-in"] = steps["Train"]["Metadata"]["TrainingJob"]["Arn"].rpartition("/")[2]

client = session.sagemaker_client
waiter = client.get_waiter("training_job_completed_or_stopped")


def describe(kind):
    return client.describe_training_job(TrainingJobName=names[kind])


for name in names.values():
    waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 500})
while describe("xgboost")["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] in ("InProgress", "Stopping"):
    time.sleep(0.3)
found["jobs"] = {kind: json.loads(json.dumps(describe(kind), default=str)) for kind in names}
found["summary"] = estimators["xgboost"].latest_training_job.rule_job_summary()[0]["RuleEvaluationStatus"]
found["path"] = estimators["xgboost"].latest_job_debugger_artifacts_path()
found["saved"] = {
    kind: len(session.list_s3_files(bucket, f"{prefix}/tensors/{name}/debug-output/events"))
    for kind, name in names.items()
}
found["checkpoints"] = len(session.list_s3_files(bucket, f"{prefix}/checkpoints/"))
said = io.StringIO()
with redirect_stdout(said):
    for name in names.values():
        session.logs_for_job(name)
found["got"] = [json.loads(line.partition("GOT ")[2]) for line in said.getvalue().splitlines() if "GOT [" in line]
found["images"] = {kind: job["AlgorithmSpecification"]["TrainingImage"] for kind, job in found["jobs"].items()}
print("\\nFOUND", json.dumps(found))
"""
SPLIT = """
import os, pathlib
ml = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
(ml / "processing/train").mkdir(parents=True, exist_ok=True)
(ml / "processing/train/rows.csv").write_text((ml / "processing/input/rows.csv").read_text())
"""

# By day: an XGBoost script and pipelines are in end_to_end/test_xgboost.py and test_pipeline.py, requirements.txt is in
# test_sagemaker_estimator.py, spot jobs are in integration/emulator/jobs/runs/test_spot.py.
pytestmark = [pytest.mark.any_back_end, pytest.mark.nightly]

# Of each back end. The images of scikit-learn, which has no hook to differ by, and of Hugging Face are built
# for Docker by the first job only.
KINDS = {
    "process": ("tensorflow", "mxnet", "xgboost", "sklearn", "huggingface"),
    "docker": ("tensorflow", "mxnet", "xgboost"),
}


@pytest.fixture(scope="module")
def found(emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script found; one run of it, because the SDK is slow to import."""
    kinds = KINDS[emulator.read_runtime()]
    folder = tmp_path_factory.mktemp("sdk")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= prepare_environment(emulator.endpoint_url, environment, folder=folder)
    for kind in KINDS["process"]:
        (folder / kind).mkdir()
        wheel = write_wheel(folder / kind, "strict_limits", "LIMIT = 1.5\n")
        (folder / kind / "requirements.txt").write_text(f"./{wheel.name}\n")
    sources = {"tensorflow": TENSORFLOW, "mxnet": MXNET, "xgboost": XGBOOST, "sklearn": SKLEARN, "split": SPLIT}
    sources["huggingface"] = HUGGING_FACE
    prefix = f"frameworks-{uuid.uuid4().hex[:8]}"
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, prefix, json.dumps(sources), ",".join(kinds)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + emulator.log_text()
    (line,) = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    result: dict[str, Any] = json.loads(line)
    return result | {"prefix": prefix, "kinds": kinds}


def test_each_frameworks_script_trains_with_its_requirements(found: dict[str, Any]) -> None:
    jobs = found["jobs"]
    assert {kind: job["TrainingJobStatus"] for kind, job in jobs.items()} == dict.fromkeys(jobs, "Completed")
    # Of requirements.txt, 1.5; of the script itself the host's number, an argument of the SDK's, a hyperparameter,
    # the columns.
    got: dict[str, list[list[Any]]] = {
        "xgboost": [[1.5, 0], [1.5, 1]],
        "tensorflow": [[1.5, "model"]],
        "mxnet": [[1.5, 0.5]],
        "sklearn": [[1.5, 3, "1.2.2"]],
        "huggingface": [[1.5, 2]],
    }
    assert sorted(found["got"]) == sorted([kind, *each] for kind in found["kinds"] for each in got[kind])
    assert found["summary"] in {"IssuesFound", "NoIssuesFound"}
    path = f"s3://sagemaker-us-east-1-123456789012/{found['prefix']}/tensors/{found['prefix']}-xgboost/debug-output"
    assert found["path"] == path
    saved = found["saved"]
    assert all(saved[kind] for kind in saved if kind != "sklearn"), saved
    assert saved.get("sklearn", 0) == 0, "Debugger has no hook for it"


def test_two_instances_on_spot_save_checkpoints(found: dict[str, Any]) -> None:
    job = found["jobs"]["xgboost"]
    assert (job["EnableManagedSpotTraining"], job["ResourceConfig"]["InstanceCount"]) == (True, 2)
    assert job["StoppingCondition"] == {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 900}
    assert job["BillableTimeInSeconds"] <= job["TrainingTimeInSeconds"]
    assert found["checkpoints"] == 2


def test_a_pipeline_trains_the_built_in_algorithm(found: dict[str, Any]) -> None:
    assert found["pipeline"] == {"Split": "Succeeded", "Train": "Succeeded"}
    job = found["jobs"]["built-in"]
    assert job["ResourceConfig"]["InstanceCount"] == 1, "the parameter's value, not its default"
    assert job["HyperParameters"]["num_round"] == "3"


def test_images_that_are_not_ours_are_refused_with_what_there_is(found: dict[str, Any]) -> None:
    assert "/knn:1'" in found["refused"]
    assert "sagemaker-xgboost" in found["refused"]


def test_local_mode_stays_the_sdks_own(found: dict[str, Any]) -> None:
    assert found["local"] == ["LocalSession", "LocalSagemakerClient"]
