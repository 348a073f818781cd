"""Tests of damaged files: documented errors, and undamaged steps readable."""

import json
import math
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import MissingCollectionFiles, SMDebugError, SMDebugValueError, TensorUnavailableForStep
from smdebug.format.tfevent.framing import read_record
from smdebug.mode_keys import ModeKeys
from smdebug.reading.reader import FileReader
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker

STEPS = 4
DAMAGED_STEP = 2
SEEDS = [pytest.param(range(3), id="3"), pytest.param(range(3, 60), id="60", marks=pytest.mark.nightly)]


def flip_bits(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 3, 20])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def fill_with_garbage(content: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice([1, 12, len(content), 3 * len(content)]))


def overwrite_a_part(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    return content[:start] + chance.randbytes(min(40, len(content) - start)) + content[start + 40 :]


def insert_a_part(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    return content[:start] + chance.randbytes(chance.randrange(1, 30)) + content[start:]


def empty(content: bytes, chance: random.Random) -> bytes:
    return b""


DAMAGE = [flip_bits, cut, fill_with_garbage, overwrite_a_part, insert_a_part, empty]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = RunMaker(tmp_path_factory.mktemp("whole") / "run", workers=2)
    for step in range(STEPS):
        for rank in range(2):
            tensors = {
                "small": np.arange(6, dtype=np.float32).reshape(2, 3) + step,
                "large": np.full(70_000, step, np.float64),
                "text": ["a", "é"],
                "narrow": np.array([-1, step], np.int8),
                "smdebug/reductions/mean/small": np.float32(step),
            }
            mode = ModeKeys.TRAIN if step % 2 else ModeKeys.EVAL
            run.write_step(step, tensors, mode, step // 2, f"worker_{rank}", {"small": (2, 3)})
    run.end()
    return tmp_path_factory.getbasetemp() / run.out_dir


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


def ask_everything(trial: Trial) -> None:
    """Every question; SMDebugError and what the questions document are the only errors."""
    trial.steps()
    trial.modes()
    trial.collections()
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for step in range(STEPS + 1):
            for ask in (tensor.value, tensor.shape, tensor.reduction_values, tensor.workers):
                try:
                    ask(step)
                except SMDebugError:
                    continue
        for mode in ModeKeys:
            tensor.steps(mode)
            try:
                tensor.values(mode)
            except SMDebugError:
                continue


def check_other_steps(trial: Trial) -> None:
    for step in set(range(STEPS)) - {DAMAGED_STEP}:
        np.testing.assert_array_equal(trial.tensor("small").value(step), np.arange(6).reshape(2, 3) + step)
        assert (trial.tensor("large").value(step) == step).all()
        assert trial.tensor("text").value(step).tolist() == ["a", "é"]
        assert trial.tensor("small").reduction_value(step, "mean") == step


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", ["events", "index"])
def test_damage_to_a_step_stays_in_that_step(
    copy: Path, kind: str, damage: Callable[[bytes, random.Random], bytes], seeds: range
) -> None:
    (path,) = copy.glob(f"{kind}/*/{DAMAGED_STEP:012}_worker_0.*")
    content = path.read_bytes()
    for seed in seeds:
        path.write_bytes(damage(content, random.Random(seed)))
        trial = create_trial(str(copy))
        check_other_steps(trial)
        ask_everything(trial)
        # The other worker's part of the step is whole.
        assert (trial.tensor("large").value(DAMAGED_STEP, worker="worker_1") == DAMAGED_STEP).all()


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_no_damaged_value_is_ever_returned(
    copy: Path, damage: Callable[[bytes, random.Random], bytes], seeds: range
) -> None:
    """The checksum in the index covers every byte of a record that means something."""
    (path,) = copy.glob(f"events/*/{DAMAGED_STEP:012}_worker_0.*")
    content = path.read_bytes()
    for seed in seeds:
        path.write_bytes(damage(content, random.Random(seed)))
        trial = create_trial(str(copy))
        for name in ("small", "large", "narrow", "text"):
            tensor = trial.tensor(name)
            try:
                found = tensor.value(DAMAGED_STEP)
            except TensorUnavailableForStep:
                with pytest.raises(TensorUnavailableForStep, match=rf"{name}.*step {DAMAGED_STEP}.*{path}"):
                    tensor.value(DAMAGED_STEP)
            else:
                np.testing.assert_array_equal(found, tensor.value(DAMAGED_STEP, worker="worker_1"))


# By day one of each type.
ODD_VALUES: list[Any] = [None, -1, "x", [], {}, 1.5]
MORE_ODD_VALUES: list[Any] = [2**70, "", [1], "\0", "../../x", True]


def list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON document."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from list_places(inner)


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd_values", [ODD_VALUES, pytest.param(MORE_ODD_VALUES, marks=pytest.mark.nightly)], ids=["types", "more"]
)
def test_index_files_with_odd_values(copy: Path, odd_values: list[Any]) -> None:
    """Whole JSON, and what stands in it makes no sense: each value in turn, replaced by each odd one."""
    path = copy / f"index/000000000/{DAMAGED_STEP:012}_worker_0.json"
    content = path.read_bytes()
    index = json.loads(content)
    index["tensor_payload"] = index["tensor_payload"][:1]
    content = json.dumps(index).encode()
    for number, _ in enumerate(list_places(json.loads(content))):
        for odd in odd_values:
            document = json.loads(content)
            container, key = list(list_places(document))[number]
            container[key] = odd
            path.write_text(json.dumps(document))
            trial = create_trial(str(copy))
            check_other_steps(trial)
            ask_everything(trial)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damaged_collections_of_one_worker(
    copy: Path, damage: Callable[[bytes, random.Random], bytes], seeds: range
) -> None:
    path = copy / "collections/000000000/worker_0_collections.json"
    content = path.read_bytes()
    for seed in seeds:
        path.write_bytes(damage(content, random.Random(seed)))
        try:
            trial = create_trial(str(copy))
        except (SMDebugError, MissingCollectionFiles):
            # A digit of the number of workers may have changed.
            continue
        check_other_steps(trial)
        ask_everything(trial)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"collections": {}, "_meta": {}},
        *({"collections": {}, "_meta": {"num_workers": number}} for number in ("x", 0, math.inf)),
    ],
)
def test_damaged_collections_of_all_workers_name_the_file(copy: Path, content: Any) -> None:
    paths = list(copy.glob("collections/*/*"))
    for path in paths:
        path.write_text(json.dumps(content))
    with pytest.raises(SMDebugValueError, match=str(min(paths))):
        create_trial(str(copy))


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_what_precedes_the_damage_is_read_as_it_was_written(
    copy: Path, damage: Callable[[bytes, random.Random], bytes], seeds: range
) -> None:
    (path,) = copy.glob(f"events/*/{DAMAGED_STEP:012}_worker_0.*")
    content, written, ends = path.read_bytes(), read_until_damage(path, "minimal"), [0]
    while ends[-1] < len(content):
        ends.append(read_record(content, ends[-1])[1])
    assert len(written) == len(ends) - 1
    for seed in seeds:
        damaged = damage(content, random.Random(seed))
        path.write_bytes(damaged)
        whole_records = sum(content[:end] == damaged[:end] for end in ends[1:])
        for check in ("minimal", "none"):
            found = read_until_damage(path, check)
            assert [name for name, _ in found[:whole_records]] == [name for name, _ in written[:whole_records]]
            for (_, value), (_, expected) in zip(found, written[:whole_records], strict=False):
                np.testing.assert_array_equal(value, expected)
        assert read_until_damage(path, "full") == [], "a run's records do not carry their checksum"


def read_until_damage(path: Path, check: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    with suppress(SMDebugError):
        found.extend((name, value) for name, _, value, _, _ in FileReader(path).read_tensors(check))
    return found


def test_foreign_files_among_those_of_a_run(copy: Path) -> None:
    for name in ("index/notes.json", "index/000000000/x.json", "index/000000000/5.json", "index/more", "events/x"):
        (copy / name).write_bytes(b"{")
    (copy / "index/000000000/000000000001_worker_0.csv").mkdir()
    (copy / "collections/000000000/notes.txt").write_bytes(b"")
    check_other_steps(create_trial(str(copy)))
