"""Scripts of each framework, forked from a warm interpreter and in a new one."""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from container_runtime.process.warm_interpreters import WarmOptions
from smdebug.trials import create_trial
from tests.integration.rules_images.warm_jobs import COLLECTIONS, Ended, Jobs
from tests.integration.rules_images.warm_scripts import SCRIPTS

# By day integration/container_runtime/process/test_warm_interpreters.py forks an interpreter with smaller imports, and
# unit/smdebug/test_forked_start.py has the generators of random numbers.
pytestmark = pytest.mark.nightly

FIRST = {"linear", "fit"}
CASES = [pytest.param(image, name, id=f"{image}-{name}") for image, scripts in SCRIPTS.items() for name in scripts]
# What differs between any two runs: times, pids, addresses, and the folders of the container.
VARYING = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d+)?|\[\d\d:\d\d:\d\d\]|\[\S+ \S+ \S+:\d+|process \d+|pid=?\d+|0x[0-9a-f]+|"
    r"[IWEF]0000 \S+ +\d+|"
    r"smdebug-emulator-\w+|\d+\.\d+s"
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Jobs, Jobs]]]:
    """Cold and warm jobs by image, made when they are first asked for."""

    class Pairs(dict[str, tuple[Jobs, Jobs]]):
        def __missing__(self, image: str) -> tuple[Jobs, Jobs]:
            warm = Jobs(tmp_path_factory.mktemp("warm"), image, WarmOptions((image,)))
            self[image] = Jobs(tmp_path_factory.mktemp("cold"), image, None), warm
            return self[image]

    made = Pairs()
    yield made
    for _, warm in made.values():
        warm.runtime.close()


def read_log(ended: Ended) -> tuple[list[str], dict[str, Any]]:
    """Return a log without what varies, and what the script has seen of its process before and after."""
    lines, seen = [], {}
    for line in ended.log:
        word, _, rest = line.partition(" ")
        if word in ("BEFORE", "AFTER"):
            seen[word] = json.loads(VARYING.sub("…", rest))
        else:
            lines.append(VARYING.sub("…", line))
    return lines, seen


def read_tensors(ended: Ended) -> dict[str, Any]:
    """Return all saved tensors by name and step."""
    if not ended.list_saved():
        return {}
    trial = create_trial(str(ended.tensors))
    return {
        f"{name} at {step}": np.asarray(trial.tensor(name).value(step))
        for name in trial.tensor_names()
        for step in trial.tensor(name).steps()
    }


def find_numbers(ended: Ended) -> list[str]:
    found = [line for line in ended.log if line.startswith("number")]
    assert found, ended.log
    return found


@pytest.mark.parametrize(("image", "name"), CASES)
def test_a_script_cannot_tell_a_fork_from_a_new_interpreter(
    pairs: dict[str, tuple[Jobs, Jobs]], image: str, name: str
) -> None:
    cold, warm = (jobs.run(SCRIPTS[image][name], "--seed") for jobs in pairs[image])
    assert not [line for line in warm.log if "new interpreter" in line or "without a warm" in line]
    assert find_numbers(warm) == find_numbers(cold)
    (cold_log, cold_seen), (warm_log, warm_seen) = read_log(cold), read_log(warm)
    for moment, seen in cold_seen.items():
        forked = warm_seen[moment]
        assert {each: (forked[each], seen[each]) for each in seen if forked[each] != seen[each]} == {}
    assert warm_log == cold_log
    assert warm.code == cold.code
    assert warm.list_saved() == cold.list_saved()
    assert warm.list_saved() or name not in FIRST or image not in COLLECTIONS
    of_cold, of_warm = read_tensors(cold), read_tensors(warm)
    assert of_warm.keys() == of_cold.keys()
    assert [each for each in of_cold if not np.array_equal(of_warm[each], of_cold[each], equal_nan=True)] == []
    # Two forks of one interpreter without seeds have other numbers.
    first, second = (find_numbers(pairs[image][1].run(SCRIPTS[image][name])) for _ in range(2))
    assert first != second
    if name in FIRST:  # each of them is from another library's generator
        of_first, of_second = (re.findall(r"\d\.\d{4,}", " ".join(numbers)) for numbers in (first, second))
        assert of_first
        assert set(of_first).isdisjoint(of_second)


def test_a_source_with_another_numpy_starts_cold(pairs: dict[str, tuple[Jobs, Jobs]]) -> None:
    own = {"numpy.py": "print('its own numpy'); raise SystemExit(7)"}
    ended = pairs["pytorch-training"][1].run(SCRIPTS["pytorch-training"]["linear"], files=own)
    assert "its own numpy" in ended.log
    assert ended.code != 0
    reason = "/opt/ml/code has a module numpy, which is imported already"
    assert f"smdebug-emulator: the script starts in a new interpreter: {reason}" in ended.log
