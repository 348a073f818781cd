"""Tests of capture of unmodified XGBoost scripts, in separate processes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.smdebug.scripts import START, ForkingInterpreter, RunScript, WriteConfig
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import xgboost as xgb
from xgboost import cv, train
from sklearn.datasets import load_breast_cancer
features, labels = load_breast_cancer(return_X_y=True)
data, other = xgb.DMatrix(features[:400], labels[:400]), xgb.DMatrix(features[400:], labels[400:])
parameters = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
booster = train(parameters, data, 4, evals=zip([data, other], ["train", "validation"]), verbose_eval=False)
xgb.XGBClassifier(n_estimators=2, n_jobs=1).fit(features, labels, eval_set=[(features, labels)], verbose=False)
cv(parameters, data, 3, nfold=2)
sys.exit(3)
"""


@pytest.fixture(scope="module")
def interpreter() -> Iterator[ForkingInterpreter]:
    interpreter = ForkingInterpreter("numpy", "sklearn.datasets", "xgboost")
    yield interpreter
    interpreter.close()


@pytest.fixture
def run_forked_script(tmp_path: Path, interpreter: ForkingInterpreter) -> RunScript:
    """Runs text as a script of an interpreter that has imported XGBoost."""
    return interpreter.build_script_runner(tmp_path)


# A new interpreter imports XGBoost after smdebug: by day end_to_end/test_xgboost.py has such a script.
@pytest.mark.parametrize("runner", ["run_forked_script", pytest.param("run_script", marks=pytest.mark.nightly)])
def test_an_untouched_script_is_captured(
    runner: str, request: pytest.FixtureRequest, run: WrittenRun, config: WriteConfig
) -> None:
    run_script: RunScript = request.getfixturevalue(runner)
    path = config(
        CollectionConfigurations=[
            {"CollectionName": name, "CollectionParameters": {"save_interval": "1"}}
            for name in ("metrics", "predictions", "labels", "hyperparameters", "average_shap", "nothing")
        ]
    )
    done = run_script(START + SCRIPT, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 3, done.stderr
    # 4 rounds of train, 2 of the estimator, 3 of the cross-validation.
    assert run.steps == list(range(9))
    assert {"train-logloss", "validation-logloss", "average_shap/f0"} <= set(run.values(3))
    assert run.values(3)["predictions"].shape == run.values(3)["labels"].shape == (169,)
    assert run.values(3)["hyperparameters/max_depth"].tolist() == [2]
    assert "validation_0-logloss" in run.values(5)
    assert run.values(5)["predictions"].shape == (569,)
    assert {"train-logloss", "test-logloss"} <= set(run.values(8))
    assert run.values(8)["predictions"].shape == (400,)
    assert run.has_ended
    assert "Not saved: collection nothing" in done.stdout


def test_collections_without_tensors_are_reported_once(
    run_forked_script: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path
) -> None:
    each_step = {"save_interval": "1"}
    path = config(
        CollectionConfigurations=[
            {"CollectionName": "metrics", "CollectionParameters": each_step},
            {"CollectionName": "labels", "CollectionParameters": each_step},
            {"CollectionName": "mine", "CollectionParameters": each_step},
            {"CollectionName": "misspelt", "CollectionParameters": {"include_regex": "^los$", **each_step}},
            {"CollectionName": "later", "CollectionParameters": {"include_regex": "^los$", "start_step": "500"}},
            {"CollectionName": "found", "CollectionParameters": {"include_regex": "logloss", **each_step}},
        ]
    )
    report = tmp_path / "warnings.jsonl"
    run_forked_script(START + SCRIPT, SMDEBUG_CONFIG_FILE_PATH=path, SMDEBUG_WARNINGS_PATH=str(report))
    assert run.has_ended
    said = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(each["Code"], each["Text"].partition(" of ")[0]) for each in said] == [
        ("HookSavedNothing", "Not saved: collection mine"),
        (
            "HookSavedNothing",
            (
                "Collection misspelt saved nothing: its include_regex ^los$ matches no tensor's name. A job with "
                "save_all shows the names."
            ),
        ),
    ]


@pytest.mark.parametrize(
    "environment",
    [{}, {"USE_SMDEBUG": "0"}, {"SMDEBUG_CONFIG_FILE_PATH": "/nowhere.json"}],
    ids=["no config", "switched off", "config missing"],
)
def test_nothing_happens_otherwise(
    run_forked_script: RunScript, run: WrittenRun, config: WriteConfig, environment: dict[str, str]
) -> None:
    path = config()
    if environment.get("USE_SMDEBUG"):
        environment = {**environment, "SMDEBUG_CONFIG_FILE_PATH": path}
    script = """
import sys
import numpy as np, xgboost
xgboost.train({"nthread": 1}, xgboost.DMatrix(np.random.rand(20, 2), np.arange(20)), 2)
always = {"smdebug.autoload", "smdebug.late_import"}
print([name for name in sys.modules if name.startswith("smdebug.") and name not in always])
"""
    done = run_forked_script(START + script, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert not run.path.exists()


def test_importing_a_config_imports_no_framework(run_script: RunScript, config: WriteConfig) -> None:
    done = run_script(
        START + "import sys\nprint([name for name in sys.modules if name in ('xgboost', 'numpy', 'torch')])\n",
        SMDEBUG_CONFIG_FILE_PATH=config(),
    )
    assert done.stdout == "[]\n", done.stderr


OWN_HOOKS = """
import xgboost as xgb, numpy as np
import smdebug.xgboost as smd
data = xgb.DMatrix(np.random.rand(20, 2), np.arange(20))
def train(rounds, *callbacks):
    xgb.train({"nthread": 1}, data, rounds, evals=[(data, "train")], callbacks=[*callbacks], verbose_eval=False)
"""


def test_a_script_with_a_hook_keeps_it(
    run_forked_script: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path
) -> None:
    script = f"""
hook = smd.Hook({str(tmp_path / "own")!r}, save_config=smd.SaveConfig(save_interval=1))
train(2, hook)
train(2)
print(hook.step, smd.get_hook() is hook)
"""
    done = run_forked_script(START + OWN_HOOKS + script, SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.stdout == "1 True\n", done.stderr
    assert not run.path.exists()


def test_a_script_that_asks_for_the_jobs_hook_may_leave_the_training_to_it(
    run_forked_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    script = "smd.get_hook().save_scalar('mine', 1)\ntrain(2)\n"
    path = config(HookParameters={"save_interval": "1"}, CollectionConfigurations=[{"CollectionName": "labels"}])
    done = run_forked_script(START + OWN_HOOKS + script, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 0, done.stderr
    assert set(run.values(0)) == {"scalar/mine", "train-rmse", "labels"}
    assert run.steps == [0, 1]


def test_a_broken_config_costs_the_capture_only(run_forked_script: RunScript, config: WriteConfig) -> None:
    path = config(HookParameters={"save_interval": "often"})
    done = run_forked_script(START + SCRIPT, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("Not saved: everything") == 1


def test_trainings_side_by_side(run_forked_script: RunScript, run: WrittenRun, config: WriteConfig) -> None:
    script = """
import threading
threads = [threading.Thread(target=train, args=(300,)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
train(2)
"""
    done = run_forked_script(
        START + OWN_HOOKS + script, SMDEBUG_CONFIG_FILE_PATH=config(HookParameters={"save_interval": "100"})
    )
    assert done.returncode == 0, done.stderr
    # One of them, and whatever came after it was over, has the hook to itself.
    assert set(range(0, 300, 100)) <= set(run.steps)
    assert "Not saved" not in done.stdout


DISTRIBUTED = """
import json, multiprocessing, sys
import numpy as np
import xgboost
import smdebug.xgboost as smd

def train(rank, tracker, path, include):
    arguments = tracker.recv()
    with xgboost.collective.CommunicatorContext(dmlc_task_id=str(rank), **arguments):
        rng = np.random.default_rng(xgboost.collective.get_rank())
        features = rng.random((80, 3))
        data = xgboost.DMatrix(features, features[:, 0])
        hook = smd.Hook(out_dir=path, include_workers=include, train_data=data, validation_data=data,
                        save_all=True, save_config=smd.SaveConfig(save_interval=1))
        xgboost.train({"nthread": 1}, data, 2, evals=[(data, "train")], callbacks=[hook], verbose_eval=False)
        hook.close()

if __name__ == "__main__":
    # The workers are forked before the tracker starts its threads.
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for rank in range(2)]
    workers = [context.Process(target=train, args=(rank, pipes[rank][0], *sys.argv[1:])) for rank in range(2)]
    for worker in workers:
        worker.start()
    tracker = xgboost.RabitTracker(host_ip="127.0.0.1", n_workers=2)
    tracker.start()
    for _, to_worker in pipes:
        to_worker.send(tracker.worker_args())
    for worker in workers:
        worker.join()
    tracker.wait_for()
    sys.exit(max(worker.exitcode for worker in workers))
"""


@pytest.mark.parametrize("include", [pytest.param("one", marks=pytest.mark.nightly), "all"])
def test_workers_train_together_over_xgboosts_communicator(
    run_forked_script: RunScript, run: WrittenRun, include: str
) -> None:
    done = run_forked_script(DISTRIBUTED, str(run.path), include)
    assert done.returncode == 0, done.stderr
    names = ["worker_0"] if include == "one" else ["worker_0", "worker_1"]
    found = {path.name.removesuffix("_collections.json") for path in run.path.glob("collections/*/*.json")}
    assert found == set(names)
    saved = [run.values(1, worker) for worker in names]
    for worker, values in zip(names, saved, strict=True):
        assert run.collections(worker)["_meta"] == {"num_workers": len(names)}
        assert values["labels"].shape == (80,)
        # The metric is that of all workers.
        assert values["train-rmse"] == saved[0]["train-rmse"]
    if include == "all":
        assert json.dumps(saved[0]["labels"].tolist()) != json.dumps(saved[1]["labels"].tolist())
    assert run.has_ended
