"""Tests of several hosts with XGBoost's image, as processes on loopback.

Each has an address of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os
import xgboost
from sagemaker_containers import entry_point
from sagemaker_xgboost_container import distributed
from sagemaker_xgboost_container.data_utils import get_dmatrix

def train(params, dtrain, rounds, is_master):
    print("ROWS", dtrain.num_row(), is_master, flush=True)
    booster = xgboost.train(params, dtrain, rounds, evals=[(dtrain, "train")])
    if is_master:
        booster.save_model(os.environ["SM_MODEL_DIR"] + "/model.ubj")

hosts = json.loads(os.environ["SM_HOSTS"])
entry_point._wait_hostname_resolution()
distributed.wait_hostname_resolution(hosts)
rows = get_dmatrix(os.environ["SM_CHANNEL_TRAIN"], "text/libsvm")
arguments = {"params": {"nthread": 1}, "dtrain": rows, "rounds": 3}
distributed.rabit_run(train, arguments, rows is not None, hosts, os.environ["SM_CURRENT_HOST"], update_rabit_args=True)
"""

NETWORKS = itertools.count(11)
ROOT = Path(__file__).parents[5]
# Imports once what all hosts need, then becomes each of them.
NURSERY = """
import json, os, runpy, signal, sys, traceback
import pandas, scipy.sparse, sklearn.metrics, sklearn.model_selection
from rules_images.training.xgboost.built_in_algorithm import __main__, training

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    root, environment, script = json.loads(line)
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    log = os.open(root + "/log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(environment)
    code = 1
    try:
        if script:
            runpy.run_path(script, run_name="__main__")
            code = 0
        else:
            code = __main__.main(["train"])
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    open(root + "/exit.partial", "w").write(str(code))
    os.rename(root + "/exit.partial", root + "/exit")
    os._exit(code)
"""


class Host:
    """One of a job's, in a folder that stands for its /opt/ml."""

    def __init__(self, root: Path, pid: int) -> None:
        self.root = root
        self._pid = pid

    def has_shown(self, text: str) -> bool:
        return text in self._read_log()

    def wait(self) -> tuple[int, str]:
        """Exit code and log, once it has ended."""
        exit_code = self.root / "exit"
        wait_until(exit_code.exists, lambda: f"{self.root} goes on:\n{self._read_log()}")
        return int(exit_code.read_text()), self._read_log()

    def signal(self, number: int) -> None:
        if not (self.root / "exit").exists():
            with suppress(ProcessLookupError):  # it has ended meanwhile, or died
                os.kill(self._pid, number)

    def _read_log(self) -> str:
        log = self.root / "log"
        return log.read_text() if log.exists() else ""


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    """A process that becomes a host for each line it is given, and answers with its id."""
    packages = ("rules_images/training/xgboost/script_packages", "smdebug/script_packages")
    path = os.pathsep.join(map(str, (ROOT, *(ROOT / each for each in packages))))
    environment = {**os.environ, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY], env=environment, stdin=pipe, stdout=pipe, text=True
    ) as found:
        yield found


@pytest.fixture
def start_hosts(tmp_path: Path, nursery: subprocess.Popen[str]) -> Iterator[Callable[..., list[Host]]]:
    """Start a host for each text of training rows, with the same hyperparameters and other channels, or a script."""
    started: list[Host] = []

    def start(given: Mapping[str, str], rows: list[str], script: Path | None = None, **channels: str) -> list[Host]:
        # A tracker's port is not free at once when it ends: each test has addresses of its own.
        network = f"127.{os.getpid() % 200 + 1}.{next(NETWORKS)}"
        hosts = [f"{network}.{number + 1}" for number in range(len(rows))]
        for number, (host, text) in enumerate(zip(hosts, rows, strict=True)):
            root = tmp_path / str(number)
            write_folder(root, hosts, host, given, {"train": text, **channels})
            # What the toolkit sets for a script.
            environment = {
                "SAGEMAKER_BASE_DIR": str(root),
                "SM_HOSTS": json.dumps(hosts),
                "SM_CURRENT_HOST": host,
                "SM_MODEL_DIR": str(root / "model"),
                "SM_CHANNEL_TRAIN": str(root / "input/data/train"),
            }
            assert nursery.stdin is not None
            assert nursery.stdout is not None
            nursery.stdin.write(f"{json.dumps([str(root), environment, script and str(script)])}\n")
            nursery.stdin.flush()
            started.append(Host(root, int(nursery.stdout.readline())))
        return started

    yield start
    for host in started:
        host.signal(signal.SIGKILL)


def write_folder(
    root: Path, hosts: list[str], current: str, given: Mapping[str, str], channels: Mapping[str, str]
) -> None:
    """Write what a host finds in its /opt/ml."""
    described = {}
    for channel, text in channels.items():
        # A host to which no object of a channel came has the folder alone.
        folder = root / "input/data" / channel
        folder.mkdir(parents=True)
        if text:
            (folder / "rows.libsvm").write_text(text)
        kind = "ShardedByS3Key" if channel == "train" else "FullyReplicated"
        described[channel] = {"TrainingInputMode": "File", "S3DistributionType": kind}
    (root / "model").mkdir()
    (root / "input/config").mkdir()
    for name, content in (
        ("hyperparameters", given),
        ("inputdataconfig", described),
        ("resourceconfig", {"hosts": hosts, "current_host": current, "network_interface_name": "lo"}),
    ):
        (root / f"input/config/{name}.json").write_text(json.dumps(content))


def to_libsvm(labels: NDArray[np.float64], rows: NDArray[np.float64]) -> str:
    return "".join(
        f"{label:g} {' '.join(f'{column}:{value:.8g}' for column, value in enumerate(row) if value)}\n"
        for label, row in zip(labels, rows, strict=True)
    )


ALGORITHM = {"num_round": "4", "objective": "binary:logistic", "eval_metric": "logloss,accuracy", "nthread": "1"}


def test_hosts_train_one_model_of_all_rows(start_hosts: Callable[..., list[Host]]) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    # The second host's rows have nothing in the last column; to the third none came.
    features[200:400, -1] = 0
    parts = [to_libsvm(labels[:200], features[:200]), to_libsvm(labels[200:400], features[200:400]), ""]
    hosts = start_hosts(ALGORITHM, parts, validation=to_libsvm(labels[400:], features[400:]))
    (code, log), (second_code, second_log), (third_code, third_log) = [host.wait() for host in reversed(hosts)][::-1]
    assert (code, second_code, third_code) == (0, 0, 0), (log, second_log, third_log)
    assert "Distributed node training with 3 hosts" in log
    for text in (log, second_log):
        assert "Channel train: 200 rows of 30 features." in text
        assert "Note: each of the 3 hosts has all data of channel validation." in text
        assert "channel train." not in text
        assert "Failed to connect" not in text
    assert "takes no part in the training." in third_log
    rows = xgboost.DMatrix(np.where(features == 0, np.nan, features), labels)
    whole, held_out = rows.slice(np.arange(400)), rows.slice(np.arange(400, len(labels)))
    model = xgboost.Booster()
    model.load_model(bytearray((hosts[0].root / "model/xgboost-model").read_bytes()))
    given = {"objective": "binary:logistic", "nthread": 1}
    alone = xgboost.train(given, whole, 4)
    # Cuts are chosen from summaries of each host's rows, so models are alike, not equal.
    np.testing.assert_allclose(model.predict(held_out), alone.predict(held_out), atol=0.2)
    assert np.mean(abs(model.predict(held_out) - alone.predict(held_out))) < 0.01
    assert not list((hosts[1].root / "model").iterdir())
    # Metrics are those of all rows, shown once.
    (line,) = [line for line in log.splitlines() if line.startswith("[3]#011")]
    assert not [line for line in second_log.splitlines() if line.startswith("[3]#011")]
    shown = {name: float(value) for name, _, value in (part.partition(":") for part in line.split("#011")[1:])}
    wanted = whole.get_label()
    predicted = model.predict(whole)
    assert shown["train-accuracy"] == pytest.approx(((predicted > 0.5) == wanted).mean(), abs=1e-4)
    logloss = -np.mean(np.where(wanted == 1, np.log(predicted), np.log(1 - predicted)))
    assert shown["train-logloss"] == pytest.approx(logloss, abs=1e-4)


def test_a_script_trains_on_all_hosts(start_hosts: Callable[..., list[Host]], tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    hosts = start_hosts({}, ["1 0:1 1:2\n", "2 0:2 1:1\n3 0:2\n"], tmp_path / "script.py")
    (code, log), (second_code, second_log) = [host.wait() for host in reversed(hosts)][::-1]
    assert (code, second_code) == (0, 0), (log, second_log)
    assert "ROWS 1 True" in log
    assert "ROWS 2 False" in second_log
    assert (hosts[0].root / "model/model.ubj").is_file()


@pytest.mark.nightly
def test_hosts_that_are_stopped_end_in_one_round(start_hosts: Callable[..., list[Host]]) -> None:
    given = {"num_round": "1000000", "nthread": "1", "save_model_on_termination": "true"}
    hosts = start_hosts(given, ["1 0:1 1:2\n2 0:3\n", "2 0:2 1:1\n3 0:2\n"])
    wait_until(lambda: hosts[0].has_shown("[5]#011"), "the hosts train")
    # The first alone is asked.
    hosts[0].signal(signal.SIGTERM)
    found = [host.wait() for host in reversed(hosts)][::-1]
    assert [code for code, _ in found] == [0, 0], found
    model = xgboost.Booster()
    model.load_model(bytearray((hosts[0].root / "model/xgboost-model").read_bytes()))
    assert 6 <= model.num_boosted_rounds() < 1_000_000


def test_no_host_has_data(start_hosts: Callable[..., list[Host]]) -> None:
    hosts = start_hosts({"num_round": "1"}, ["", ""])
    for code, log in [host.wait() for host in hosts]:
        assert code == 1
        assert log.endswith("No host of the job has data.\n")
