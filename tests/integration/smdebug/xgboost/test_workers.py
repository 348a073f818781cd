"""Tests of workers that train together over XGBoost's communicator."""

import json

import pytest

from tests.unit.smdebug.scripts import RunScript
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

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
        worker.join(60)
    tracker.wait_for(60)
    sys.exit(max(worker.exitcode for worker in workers))
"""


@pytest.mark.parametrize("include", [pytest.param("one", marks=pytest.mark.nightly), "all"])
def test_workers(run_script: RunScript, run: WrittenRun, include: str) -> None:
    done = run_script(DISTRIBUTED, str(run.path), include)
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
