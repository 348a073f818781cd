"""Scripts of each framework, forked from a warm interpreter and in a new one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions
from container_runtime.spec import ContainerSpec, Mount
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TORCH = """
import random, sys, numpy, torch
if "--seed" in sys.argv:
    random.seed(3), numpy.random.seed(3), torch.manual_seed(3)
network, loss = torch.nn.Linear(8, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for _ in range(4):
    optimizer.zero_grad()
    value = loss(network(torch.ones(4, 8)), torch.ones(4, 1))
    value.backward()
    optimizer.step()
print("number", value.item(), random.random(), numpy.random.rand())
"""
KERAS = """
import sys, keras, numpy, tensorflow
if "--seed" in sys.argv:
    keras.utils.set_random_seed(3)
network = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
network.compile(optimizer="sgd", loss="mse")
network.fit(numpy.ones((8, 8)), numpy.ones((8, 1)), batch_size=4, verbose=0)
print("number", network.get_weights()[0][0][0], tensorflow.random.uniform(()).numpy(), numpy.random.rand())
"""
XGBOOST = """
import sys, numpy, xgboost
numpy.random.seed(3) if "--seed" in sys.argv else None
values = numpy.random.rand(50, 8)
data = xgboost.DMatrix(values, values[:, 0] * 2)
model = xgboost.train({"max_depth": 2, "subsample": 0.5}, data, num_boost_round=4, evals=[(data, "train")])
print("number", model.predict(data)[0])
"""
SCIKIT_LEARN = """
import sys, numpy
from sklearn.ensemble import RandomForestRegressor
numpy.random.seed(3) if "--seed" in sys.argv else None
values = numpy.random.rand(50, 8)
print("number", RandomForestRegressor(5).fit(values, values[:, 0]).predict(values)[0])
"""
WORKS = {
    "pytorch-training": (TORCH, "losses"),
    "tensorflow-training": (KERAS, "losses"),
    "sagemaker-xgboost": (XGBOOST, "metrics"),
    "sagemaker-scikit-learn": (SCIKIT_LEARN, None),
}


class Jobs:
    """Containers of one image, as jobs start them."""

    def __init__(self, folder: Path, image: str, warm: WarmOptions | None) -> None:
        self._folder = folder
        self._image = image
        self._count = 0
        self.runtime = LocalProcesses(folder / "containers", warm=warm)
        if warm is not None:
            interpreter = self.runtime._warm._interpreters[image]
            wait_until(lambda: interpreter.is_ready, lambda: interpreter.has_ended and interpreter.read_output())

    def run(self, *arguments: str, files: dict[str, str] | None = None) -> tuple[list[str], int, list[str]]:
        """Run a script; return its log after the toolkit's invocation, its exit code and the files that it saved."""
        script, collection = WORKS[self._image]
        self._count += 1
        base = self._folder / str(self._count)
        for name in ("input/config", "code", "output", "model"):
            (base / name).mkdir(parents=True)
        for name, text in {"train.py": script, **(files or {})}.items():
            (base / "code" / name).write_text(text)
        config = base / "input" / "config"
        hyperparameters = {"sagemaker_program": "train.py", "sagemaker_submit_directory": "/opt/ml/code"}
        hyperparameters |= dict.fromkeys((each.removeprefix("--") for each in arguments), "1")
        (config / "hyperparameters.json").write_text(json.dumps({k: json.dumps(v) for k, v in hyperparameters.items()}))
        resources = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
        (config / "resourceconfig.json").write_text(json.dumps(resources))
        (config / "inputdataconfig.json").write_text("{}")
        if collection is not None:
            hook = {
                "S3OutputPath": "s3://bucket",
                "LocalPath": "/opt/ml/output/tensors",
                "CollectionConfigurations": [
                    {"CollectionName": collection, "CollectionParameters": {"save_interval": "1"}}
                ],
            }
            (config / "debughookconfig.json").write_text(json.dumps(hook))
        container = self.runtime.start(
            ContainerSpec("job", self._image, ("train",), mounts=(Mount(base, "/opt/ml"),), environment={"A": "1"})
        )
        lines = [line.text for line in self.runtime.logs(container)]
        ended = self.runtime.wait(container)
        assert ended is not None
        self.runtime.remove(container)
        tensors = base / "output" / "tensors"
        saved = sorted(str(path.relative_to(tensors)) for path in tensors.rglob("*") if path.is_file())
        return lines, ended.code, saved


@pytest.fixture(scope="module", params=WORKS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Jobs, Jobs]]:
    image = request.param
    warm = Jobs(tmp_path_factory.mktemp("warm"), image, WarmOptions((image,)))
    yield Jobs(tmp_path_factory.mktemp("cold"), image, None), warm
    warm.runtime.close()


def find_number(lines: list[str]) -> str:
    found = [line for line in lines if line.startswith("number")]
    assert len(found) == 1, lines
    return found[0]


def test_a_seeded_script_has_the_same_numbers_and_tensors(pair: tuple[Jobs, Jobs]) -> None:
    (cold_log, *cold_end), (warm_log, *warm_end) = (jobs.run("--seed") for jobs in pair)
    assert find_number(cold_log) == find_number(warm_log)
    assert cold_end == warm_end
    assert warm_end[0] == 0
    assert not [line for line in warm_log if "new interpreter" in line or "without a warm" in line]


def test_scripts_without_a_seed_have_other_numbers(pair: tuple[Jobs, Jobs]) -> None:
    numbers = [find_number(pair[1].run()[0]).split()[1:] for _ in range(2)]
    assert all(first != second for first, second in zip(*numbers, strict=True))


def test_a_source_with_another_numpy_starts_cold(pair: tuple[Jobs, Jobs]) -> None:
    lines, code, _ = pair[1].run(files={"numpy.py": "print('its own numpy'); raise SystemExit(7)"})
    assert "its own numpy" in lines
    assert code != 0
    reason = "/opt/ml/code has a module numpy, which is imported already"
    assert f"smdebug-emulator: the script starts in a new interpreter: {reason}" in lines
