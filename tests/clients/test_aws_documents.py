"""Tests of AWS's Debugger documents: their code cells run unchanged.

Only their placeholders are filled.

The documents are not this project's, so they are read where they lie beside the checkout, and elsewhere nothing is run.
`examples/documents` has what they show in our words.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.running_emulator import RunningEmulator

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = CHECKOUT.parent / "shared" / "seeds"
SCRIPTS = CHECKOUT / "examples" / "documents" / "source"
HOOK, OVERVIEW, ANALYSIS = "002_*.txt", "003_*.txt", "004_*.txt"
IMAGE = "sagemaker-debugger-rule-evaluator:latest"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="AWS's documents do not lie beside the checkout"),
    pytest.mark.timeout(1200),  # the first job builds TensorFlow's environment
]


def read_document(pattern: str) -> str:
    (path,) = DOCUMENTS.glob(pattern)
    return path.read_text(encoding="utf-8")


def fill(text: str, *placeholders: tuple[str, str]) -> str:
    """Put what a reader would in the place of each placeholder, or what the document's own slip leaves out."""
    for placeholder, filling in placeholders:
        assert placeholder in text, placeholder
        text = text.replace(placeholder, filling)
    return text


def read_cells(pattern: str) -> list[str]:
    """The fenced cells of a document in Markdown."""
    return re.findall(r"^```(?:python)?\n(.*?)^```$", read_document(pattern), re.MULTILINE | re.DOTALL)


# What "Configure Debugger Hook" leaves to its reader, and a comma and a module's name that it forgets.
OF_THE_HOOK = (
    ('"key_1": "value_1",\n            "key_2": "value_2",\n            ...\n            "key_n": "value_n"',
     '"include_regex": "relu", "save_interval": "10"'),
    ('"specify-your-s3-bucket-uri"\n', '"s3://sagemaker-us-east-1-123456789012/of-the-reader",\n'),
    ("sm.get_execution_role()", "sagemaker.get_execution_role()"),
    ("directory/to/your_training_script.py", str(SCRIPTS / "keras_script.py")),
)  # fmt: skip
# Each script of the document: the three that train, and what their places in S3 are called.
TRAINED = {
    "debugger-built-in-collections-hook": ("weights", "gradients", "losses", "biases"),
    "debugger-modified-collections-hook": ("losses",),
    "debugger-custom-collections-hook": ("custom_activations_collection",),
}
SHOW_TRIAL = """
from smdebug.trials import create_trial
trial = create_trial(sagemaker_estimator.latest_job_debugger_artifacts_path())
for config in collection_configs:
    names = trial.tensor_names(collection=config.name)
    print("SAVED", config.name, len(names), trial.tensor(names[0]).steps())
"""
OF_THE_OVERVIEW = (
    ("import sagemaker\n", "import sagemaker, sagemaker.tensorflow\n"),  # the package does not import it
    ('entry_point="script.py"', f"entry_point={str(SCRIPTS / 'keras_script.py')!r}"),
    # The SDK asks for both.
    ('framework_version="1.15"', 'framework_version="1.15", instance_count=1, instance_type="ml.m4.xlarge"'),
)
SHOW_RULES = """
for judged in sagemaker_simple_estimator.latest_training_job.rule_job_summary():
    print("JUDGED", judged["RuleConfigurationName"], judged["RuleEvaluationStatus"])
"""
KERAS = """
import argparse
import numpy as np
import tensorflow as tf
args = argparse.Namespace(epochs=2, out_dir="run")
x_train = x_test = np.random.default_rng(0).standard_normal((64, 4)).astype("float32")
y_train = y_test = (x_train.sum(axis=1) > 0).astype("int32")
"""
OF_KERAS = (
    ("Sequential([ ... ])", 'Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2, activation="softmax")])'),
)

# "Programming Model for Analysis" is plain text: its cells by their first lines, each as far as it goes.
CELLS = (
    r"from smdebug\.trials import create_trial\ntrial = create_trial\(path='s3:.*\n",
    r"from smdebug\.trials import create_trial\ntrial = create_trial\(path='/.*\n",
    r"from smdebug\.trials import create_trial\ntr = .*\n.*\n",
    r"from smdebug\.rules import Rule\n\nclass .*\n(?:    .*\n)+",
    r"    def invoke_at_step.*\n(?:        .*\n)+",
    r"estimator = Estimator\(\n(?:[ \t]+\S.*\n)+",
    r'"DebugRuleConfigurations": \[\n(?:\t.*\n)+',
    r"from smdebug\.rules import invoke_rule\n(?:.*\n){4}invoke_rule.*\n",
    r"from smdebug\.exceptions import \*\n",
    r"from smdebug\.analysis\.utils import no_refresh\n.*\n",
    r"from smdebug\.analysis\.utils import refresh\n.*\n?",
)
# What can be asked of a trial: a call on a line of its own, in a list, or in a table before what it does.
CALL = re.compile(r"^(?:  • )?(trial\..*?(?:\)|,\n.*\)|,))(?: (?:See|Retrieve|Query|Wait|Returns) .*)?$", re.MULTILINE)
RUN = """
import tempfile
import boto3
import numpy as np
import torch
import smdebug.pytorch as smd
from smdebug import modes
from smdebug.core.modes import ModeKeys

hook = smd.Hook(
    out_dir="resnet", save_config=smd.SaveConfig(save_interval=10),
    include_collections=["weights", "gradients", "losses", "relu_and_softmax"],
)
hook.get_collection("relu_and_softmax").include("relu|softmax")
network = torch.nn.Sequential()
for name, part in (("first", torch.nn.Linear(4, 4)), ("relu", torch.nn.ReLU()), ("softmax", torch.nn.Softmax(1))):
    network.add_module(name, part)
loss = torch.nn.MSELoss()
hook.set_mode(modes.TRAIN)
hook.register_module(network)
hook.register_loss(loss)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(250):
    optimizer.zero_grad()
    loss(network(torch.randn(8, 4)), torch.ones(8, 4)).backward()
    optimizer.step()
hook.close()
s3 = boto3.client("s3")
from functools import partial
from pathlib import Path
for bucket, prefix in (("smdebug-testing-bucket", "outputs/resnet"), ("smdebug-dev-test", "mnist-job")):
    s3.create_bucket(Bucket=bucket)
    for path in Path("resnet").rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), bucket, f"{prefix}/{path.relative_to('resnet')}")
"""
# What the names in the calls stand for.
NAMES = """
name = trial.tensor_names(collection="losses")[0]
step = step_num = 20
steps = required_steps = [10, 20]
mode, n, reduction_name = modes.TRAIN, 2, "mean"
"""
TRAIN = """
import time
from types import SimpleNamespace
import boto3, json, sagemaker
from sagemaker.debugger import CollectionConfig, Rule
from sagemaker.pytorch import PyTorch as Estimator
session = sagemaker.Session()
rest = dict(
    entry_point={script!r}, role=sagemaker.get_execution_role(), instance_count=1, instance_type="ml.m5.large",
    framework_version="2.8.0", py_version="py312",
)
"""
SEND = """
estimator.fit(wait=False)
client = boto3.client("sagemaker")
sent = client.describe_training_job(TrainingJobName=estimator.latest_training_job.name)
source = sent["DebugRuleConfigurations"][0]["RuleParameters"]["source_s3_uri"]
members = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition",
           "HyperParameters", "DebugHookConfig")
request = {name: sent[name] for name in members}
"""
JUDGE = """
client.create_training_job(TrainingJobName="by-the-api", **request, **rules)
for name in (sent["TrainingJobName"], "by-the-api"):
    while (judged := client.describe_training_job(TrainingJobName=name)["DebugRuleEvaluationStatuses"][0])[
        "RuleEvaluationStatus"
    ] == "InProgress":
        time.sleep(0.3)
    print("JUDGED", judged["RuleConfigurationName"], judged["RuleEvaluationStatus"])
"""


def find_cells() -> list[str]:
    text = read_document(ANALYSIS)
    found = [re.search(cell, text) for cell in CELLS]
    return [each[0] for each in found if each is not None]


def read_calls() -> list[str]:
    return CALL.findall(read_document(ANALYSIS))


def build_hook_script(number: int) -> str:
    cells = [fill(cell, *((old, new) for old, new in OF_THE_HOOK if old in cell)) for cell in read_cells(HOOK)]
    return "\n".join([*(cells[:6] if number == 0 else []), cells[6 + number], SHOW_TRIAL])


def build_zero_change_script() -> str:
    return fill(read_cells(OVERVIEW)[0], *OF_THE_OVERVIEW) + SHOW_RULES


def build_keras_script() -> str:
    plain, hooked, shown = read_cells(OVERVIEW)[2:]
    filled = [fill(cell, *OF_KERAS) for cell in (plain, hooked)]
    return "\n".join([KERAS, *filled, "hook.close()", fill(shown, ("CrossEntropyLoss:0", "loss"))])


def build_analysis_script() -> str:
    remote, local, ranged, *rules, _, _, invoked, exceptions, frozen, fresh = find_cells()
    calls = [
        fill(call, ("step= None,", "step= None, mode=modes.GLOBAL, regex=None, collection=None)"))
        if call.endswith(",")
        else call.replace("trial.collection(name)", 'trial.collection("losses")')
        for call in read_calls()
    ]
    asked = [f"print('ASKED', {call!r}, repr({call})[:80])" for call in calls]
    ended = f"try:\n{textwrap.indent(invoked, '    ')}except NoMoreData:\n    print('INVOKED to the end')"
    bodies = [f"{cell.rstrip()}\n    print('READ', trials[0].steps()[:2])" for cell in (frozen, fresh)]
    opened = [RUN, fill(local, ("/home/ubuntu/smdebug_outputs/resnet", "resnet")), remote, NAMES]
    judged = ["".join(rules), exceptions, ended, "trials = [trial]"]
    return "\n".join([*opened, *asked, ranged, "print('RANGE', tr.steps())", *judged, *bodies])


def build_rule_script() -> str:
    *_, of_sdk, of_api, _, _, _, _ = find_cells()
    of_sdk = fill(
        of_sdk,
        ("Rules.custom(", f"[Rule.custom(name='VGRule', image_uri={IMAGE!r},"),
        ('"threshold"', 'rule_parameters={"threshold"'),
    )
    of_api = fill(
        of_api,
        ('"DebugRuleConfigurations": [', '{"DebugRuleConfigurations": [{'),
        ('"RuleEvaluatorImage": ""', f'"RuleEvaluatorImage": "{IMAGE}"'),
        ('"VanishingGradient"', '"VanishingGradientRule"'),  # which the class above it is called
    )
    script = TRAIN.format(script=str(SCRIPTS / "torch_script.py"))
    rules = f"rules = json.loads({of_api + '}}]}'!r}.replace('s3://path/to/', source))"
    return "\n".join([script, f"{of_sdk}}})], **rest)", SEND, rules, JUDGE])


SCRIPTS_OF_DOCUMENTS: dict[str, tuple[Callable[[], str], list[str]]] = {
    **{
        place: (partial(build_hook_script, number), [rf"SAVED {name} [1-9]\d* \[0" for name in names])
        for number, (place, names) in enumerate(TRAINED.items())
    },
    "zero script change": (build_zero_change_script, ["JUDGED ExplodingTensor NoIssuesFound"]),
    "Keras": (build_keras_script, [r"Saved tensor values for \[.*'loss'", "Loss values were "]),
    "analysis": (
        build_analysis_script,
        [r"RANGE \[100, 110, .*190\]", "INVOKED to the end", r"READ \[0, 10\]", r"READ \[0, 10\]"],
    ),
    "a rule's job": (build_rule_script, ["JUDGED VGRule IssuesFound", "JUDGED VGRule IssuesFound"]),
}


@pytest.fixture(scope="module")
def started(
    start_emulator: Callable[..., RunningEmulator], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All scripts at once: most of each is waiting for its jobs."""
    served = start_emulator("process")
    run = [sys.executable, "-W", "ignore", "-m", "emulator", "run", "--state-dir", str(served.state_dir), "--"]
    programs = {}
    for name, (build, _) in SCRIPTS_OF_DOCUMENTS.items():
        folder = tmp_path_factory.mktemp("document")
        (folder / "rules").mkdir()
        (folder / "rules" / "vanishing.py").write_text("".join(find_cells()[3:5]))
        (folder / "script.py").write_text(build())
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        programs[name] = subprocess.Popen(
            [*run, sys.executable, "-W", "ignore", "script.py"],
            cwd=folder,
            env=environment | {"HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    yield programs
    for program in programs.values():
        if program.poll() is None:
            program.kill()
        program.communicate()
    served.stop()


@pytest.mark.parametrize("name", SCRIPTS_OF_DOCUMENTS)
def test_the_cells_of_a_document_run(name: str, started: dict[str, subprocess.Popen[str]]) -> None:
    printed, _ = started[name].communicate(timeout=1100)
    assert started[name].returncode == 0, printed
    position = 0
    for pattern in SCRIPTS_OF_DOCUMENTS[name][1]:
        found = re.compile(pattern).search(printed, position)
        assert found, f"{pattern!r} is not in, after what comes before it:\n{printed}"
        position = found.end()


def test_no_cell_is_left_out() -> None:
    assert (len(read_cells(HOOK)), len(read_cells(OVERVIEW)), len(find_cells())) == (9, 5, len(CELLS))
    assert "pip install smdebug" in read_cells(OVERVIEW)[1], "in whose place this project's wheel stands"
    text = read_document(ANALYSIS)
    for cell in find_cells():
        text = text.replace(cell, "")
    left = [
        line
        for line in CALL.sub("", text).splitlines()
        if re.match(r"\s*(from|import|with|class|def|trial\.)\b.*[(:,*]", line)
    ]
    assert left == []
