"""All 21 built-in rules over one run. Goal: at most 3 times a numpy loop.

The run has 1,000 steps of 100 tensors of 64x64.

The rules run together, as on a laptop: all of them evaluate a step before the next step begins. A tensor that one rule
has read is therefore not read again by the others. The numpy loop reads the same event files once, each with one call,
and computes the mean of every tensor.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugError
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.storage.output import write_whole_file
from smdebug.trials import Trial, create_trial
from smdebug.writing.file_writer import FileWriter

STEPS, OTHER_STEPS = 1000, 100
SIDE = 64
COLLECTIONS = {"weights": "^Net.*weight", "gradients": "^gradient", "losses": "[Ll]oss.*output"}
EVERY = {"tensor_regex": ".*"}
PARAMETERS: dict[str, dict[str, str]] = {
    "AllZero": EVERY,
    "TensorVariance": {**EVERY, "max_threshold": "1e9"},
    "UnchangedTensor": {"tensor_regex": "layer|relu|tanh"},
    "SimilarAcrossRuns": {"tensor_regex": "layer|relu|tanh"},
    "Overtraining": {"delta": "0"},
    "StalledTrainingRule": {"threshold": "3600"},
}


def write_run(folder: Path, steps: int, seed: int) -> None:
    """Write a run with 100 tensors of 64x64 of a healthy network, and a few numbers, at each step."""
    manager = CollectionManager()
    for name, regex in COLLECTIONS.items():
        manager.add(Collection(name, include_regex=regex))
    manager.set_num_workers(1)
    manager.export(str(folder), "worker_0_collections.json")
    random = np.random.default_rng(seed)
    names = [f"Net_layer{i}.weight" for i in range(40)] + [f"gradient/Net_layer{i}.weight" for i in range(40)]
    names += [f"relu{i}_input_0" for i in range(8)] + [f"tanh{i}_input_0" for i in range(4)]
    base = {name: random.standard_normal((SIDE, SIDE), dtype=np.float32) for name in names}
    for step in range(steps):
        factor = np.float32((-1) ** step * (2 + np.sin(step)))
        tensors: dict[str, Any] = {name: values * factor for name, values in base.items()}
        tensors |= {f"relu{i}_output_0": np.maximum(tensors[f"relu{i}_input_0"], 0) for i in range(8)}
        tensors |= {
            "CrossEntropyLoss_output_0": np.float32(0.99**step),
            "labels": np.arange(SIDE) % 4,
            "predictions": np.arange(SIDE) % 4,
            **{f"feature_importance/weight/f{i}": 0.1 for i in range(10)},
            "trees/Node": np.arange(7),
        }
        with FileWriter(str(folder), "worker_0", step, mode=ModeKeys.TRAIN) as writer:
            for name, value in tensors.items():
                writer.write_tensor(value, name, mode=ModeKeys.TRAIN, mode_step=step)
    write_whole_file(f"{folder}/{END_OF_JOB_FILE}", [])


def time_loop(folders: list[Path]) -> tuple[float, int]:
    """Return the seconds to read every event file once and compute the mean of each tensor, and the bytes read."""
    seconds, size = 0.0, 0
    for folder in folders:
        trial = create_trial(str(folder))
        names = trial.tensor_names()
        files: dict[Path, list[tuple[int, int]]] = {}
        for step in trial.steps():
            for name in names:
                location = trial.tensor(name).saved(step)["worker_0"].location
                assert location is not None
                count = SIDE * SIDE * 4 if location.length > SIDE * SIDE * 4 else 8
                begin = location.start_idx + location.length - 4 - count
                files.setdefault(folder / location.event_file_name, []).append((begin, begin + count))
        begun = time.perf_counter()
        for path, ranges in files.items():
            content = np.fromfile(path, dtype=np.uint8)
            size += content.size
            for first, last in ranges:
                part = content[first:last]
                (part.view(np.float32) if part.size > 8 else part).mean()
        seconds += time.perf_counter() - begun
    return seconds, size


def time_rules(trial: Trial, rules: list[BuiltInRule]) -> tuple[float, dict[str, float], set[str]]:
    """Return the seconds of all rules at all steps, the seconds of each rule, and the rules that fired."""
    spent = dict.fromkeys((rule.rule_name for rule in rules), 0.0)
    fired = set()
    begun = now = time.perf_counter()
    for step in trial.steps():
        for rule in rules:
            try:
                rule.invoke(step)
            except RuleEvaluationConditionMet:
                fired.add(rule.rule_name)
            except SMDebugError as error:
                raise RuntimeError(f"{rule.rule_name} at step {step}") from error
            before, now = now, time.perf_counter()
            spent[rule.rule_name] += now - before
    return time.perf_counter() - begun, spent, fired


def measure() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        run, other = Path(folder) / "run", Path(folder) / "other"
        write_run(run, STEPS, seed=0)
        write_run(other, OTHER_STEPS, seed=1)
        time_loop([run, other])  # brings the files into the page cache
        loop, size = time_loop([run, other])
        opened = time.perf_counter()
        trial, second = create_trial(str(run)), create_trial(str(other))
        opened = time.perf_counter() - opened
        rules = []
        for name in list_names():
            rule_class = find_built_in_rule(name)
            others = [second] if rule_class.compares_runs else None
            rules.append(rule_class(trial, others, **PARAMETERS.get(name, {})))
            rules[-1].output_dir = Path(folder)
        seconds, spent, fired = time_rules(trial, rules)
        again, _ = time_loop([run, other])
    loop = (loop + again) / 2
    yield f"numpy loop over {size / 1e9:.2f} GB of event files: {loop:.2f} s"
    yield f"{len(rules)} rules over {STEPS} steps: {seconds:.2f} s = {seconds / loop:.1f} times the loop (goal: 3)"
    yield f"opening both runs: {opened:.2f} s; rules that fired: {', '.join(sorted(fired)) or 'none'}"
    slowest = sorted(spent, key=lambda name: -spent[name])
    yield "seconds by rule, the first one reading for the rest: " + ", ".join(f"{n} {spent[n]:.2f}" for n in slowest)
