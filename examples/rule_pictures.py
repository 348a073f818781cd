"""Generator of docs/rules/*.svg: each built-in rule firing on generated steps.

python -m examples.rule_pictures docs/rules
"""

import sys
import tempfile
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import numpy as np

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.mode_keys import ModeKeys
from smdebug.rules.builtin import find_built_in_rule
from smdebug.rules.builtin.stalled_training_rule import StalledTrainingRule
from smdebug.rules.evaluator import evaluate
from smdebug.rules.report.rule_report import PLOT_FILE, RuleReport
from smdebug.storage.output import write_whole_file
from smdebug.trials import create_trial
from smdebug.writing.file_writer import FileWriter

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
COLLECTIONS = {"weights": "^fc.weight", "gradients": "^gradient", "losses": "loss"}
GRID = np.linspace(-1.0, 1.0, 400, dtype=np.float32).reshape(20, 20)


@dataclass
class Firing:
    """A run that makes a rule fire.

    Attributes:
        steps: the tensors of each step.
        parameters: the rule's.
        modes: of the steps; all TRAIN where there are none.
        other: the steps of the run that it is compared with.
    """

    steps: list[dict[str, Any]]
    parameters: dict[str, str] = field(default_factory=dict)
    modes: list[ModeKeys] | None = None
    other: list[dict[str, Any]] | None = None


def make_firings() -> dict[str, Firing]:
    """One run for each rule that can fire; the numbers are made up, and the same every time."""
    weight, gradient = "fc.weight", "gradient/fc.weight"
    classes = np.arange(100) % 2
    losses = [1.0, 0.7, 0.5, 0.42, 0.39, 0.385, 0.384, 0.384, 0.384, 0.384, 0.384, 0.384]
    saturating = [GRID * scale for scale in (1, 4, 8, 12, 18, 24)]
    return {
        "AllZero": Firing(
            [{weight: np.where(np.abs(GRID) < part, 0, GRID)} for part in (0.1, 0.2, 0.35, 0.6, 0.8, 0.92)],
            {"collection_names": "weights", "threshold": "90"},
        ),
        "CheckInputImages": Firing(
            [{"input_image": np.full((32, 3, 2, 2), 0.45, np.float32)} for _ in range(6)],
            {"regex": "input_image", "threshold_samples": "128"},
        ),
        "ClassImbalance": Firing(
            [
                {"labels": (np.arange(100) < part).astype(int), "predictions": (np.arange(100) < part).astype(int)}
                for part in (60, 80, 90, 95, 98, 99, 99, 99, 99)
            ],
            {"samples": "200"},
        ),
        "Confusion": Firing(
            [
                {"labels": classes, "predictions": np.where(np.arange(100) < wrong, 1 - classes, classes)}
                for wrong in (0, 2, 3, 5, 8, 14)
            ]
        ),
        "DeadRelu": Firing(
            [{"relu_output_0": np.maximum(GRID - shift, 0).T} for shift in (-1.0, -0.7, -0.5, -0.2, 0.1, 0.4)],
            {"threshold_inactivity": "10"},
        ),
        "ExplodingTensor": Firing(
            [{gradient: GRID * scale} for scale in (1, 10, 1e3, 1e10, 1e30)] + [{gradient: np.full((4, 4), np.inf)}],
            {"collection_names": "gradients"},
        ),
        "FeatureImportanceOverweight": Firing(
            [
                {f"feature_importance/weight/f{at}": value for at, value in enumerate((top, 5.0, 4.0, 2.0, 2.0, 1.0))}
                for top in (3.0, 5.0, 8.0, 12.0, 20.0)
            ]
        ),
        "LossNotDecreasing": Firing([{"loss": loss} for loss in losses], {"num_steps": "2", "mode": "TRAIN"}),
        "NLPSequenceRatio": Firing(
            [{"embedding0_input_0": (np.arange(100) >= zeros).astype(int)} for zeros in (10, 22, 30, 45, 58)]
        ),
        "Overfit": Firing(
            [
                {"loss": loss}
                for pair in zip(losses[:6], (1.05, 0.74, 0.53, 0.45, 0.42, 0.47), strict=True)
                for loss in pair
            ],
            modes=[TRAIN, EVAL] * 6,
        ),
        "Overtraining": Firing([{"loss": loss} for loss in losses]),
        "PoorWeightInitialization": Firing(
            [
                {"loss": loss, gradient: GRID, "relu_input_0": GRID, "fc2_relu_input_0": GRID * scale}
                for loss, scale in zip(losses, (1.0, 1.4, 2.0, 2.6, 3.0, 3.6), strict=False)
            ]
        ),
        "SaturatedActivation": Firing([{"tanh_input_0": values.T} for values in saturating], {"threshold_layer": "25"}),
        "SimilarAcrossRuns": Firing(
            [{weight: GRID * step} for step in range(1, 6)],
            {"tensor_regex": "weight"},
            other=[{weight: GRID * (step if step == 5 else -1)} for step in range(1, 6)],
        ),
        "StalledTrainingRule": Firing([{"loss": loss} for loss in losses[:5]], {"threshold": "60"}),
        "TensorVariance": Firing(
            [{weight: GRID * scale} for scale in (1.0, 1.3, 2.0, 3.1, 4.4, 6.0)],
            {"tensor_regex": "weight", "max_threshold": "10"},
        ),
        "TreeDepth": Firing([{"trees/Node": np.arange(2**depth)} for depth in (2, 3, 4, 5, 6)]),
        "UnchangedTensor": Firing(
            [{weight: GRID * scale} for scale in (1.0, 0.8, 0.7, 0.65, 0.65, 0.65)], {"collection_names": "weights"}
        ),
        "VanishingGradient": Firing([{gradient: GRID * 10.0**-power} for power in range(1, 9)]),
        "WeightUpdateRatio": Firing([{weight: GRID * scale} for scale in (1.0, 1.1, 1.3, 2.0, 6.0, 80.0)]),
    }


def write_run(folder: Path, steps: list[dict[str, Any]], modes: list[ModeKeys] | None) -> None:
    manager = CollectionManager()
    for name, regex in COLLECTIONS.items():
        manager.add(Collection(name, include_regex=regex))
    manager.set_num_workers(1)
    manager.export(str(folder), "worker_0_collections.json")
    counts: dict[ModeKeys, int] = {}
    for step, tensors in enumerate(steps):
        mode = TRAIN if modes is None else modes[step]
        counts[mode] = counts.get(mode, -1) + 1
        with FileWriter(str(folder), "worker_0", step, mode=mode) as writer:
            for name, value in tensors.items():
                writer.write_tensor(value, name, mode=mode, mode_step=counts[mode])
    write_whole_file(str(folder / END_OF_JOB_FILE), [])


def judge_firing(name: str, firing: Firing, folder: Path) -> RuleReport:
    """Evaluates the rule on its run; writes report and plot into the folder."""
    write_run(folder / "run", firing.steps, firing.modes)
    others = None
    if firing.other is not None:
        write_run(folder / "other", firing.other, None)
        others = [create_trial(str(folder / "other"), name="my-finished-job")]
    rule = find_built_in_rule(name)(create_trial(str(folder / "run")), others, **firing.parameters)
    if isinstance(rule, StalledTrainingRule):
        # A clock that the steps of a stalled training pass on: 20 s a step, and then more and more.
        times = accumulate(14.0 * 1.4**number for number in count())
        rule.begin(lambda: next(times))
    report = RuleReport(name, name, "made-up", firing.parameters, rule)
    report.write(evaluate(rule, report=report), folder)
    return report


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, firing in make_firings().items():
        with tempfile.TemporaryDirectory() as temporary:
            judge_firing(name, firing, Path(temporary))
            (folder / f"{name}.svg").write_text((Path(temporary) / PLOT_FILE).read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
