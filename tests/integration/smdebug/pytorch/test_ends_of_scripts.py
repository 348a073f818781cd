"""Tests of runs of killed and failed PyTorch scripts, and of full disks."""

import pytest

from smdebug.trials import create_trial
from tests.unit.smdebug.scripts import RunScript
from tests.unit.smdebug.written_run import WrittenRun

FULL = """
import resource, sys, torch
import smdebug.pytorch as smd
model = torch.nn.Linear(200, 200)
hook = smd.Hook(out_dir=sys.argv[1], save_config=smd.SaveConfig(save_interval=1), include_regex="a",
                include_collections=["weights", "gradients"])
hook.register_module(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(2, 200)).sum().backward()
    optimizer.step()
step()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
step(); step()
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
step()
hook.close()
print("trained to the end")
"""


@pytest.mark.slow
def test_a_disk_that_takes_no_more_costs_the_steps_of_that_time(run_torch_script: RunScript, run: WrittenRun) -> None:
    # Files may not grow beyond 100 kB: as on a full disk a write is cut first, and the next one refused.
    done = run_torch_script(FULL, str(run.path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "trained to the end" in done.stdout
    assert done.stdout.count("Not saved") == 1
    assert run.steps == [0, 3]
    assert run.temp_files == []
    assert run.has_ended
    trial = create_trial(str(run.path))
    assert trial.steps() == [0, 3]
    for name in trial.tensor_names():
        for step in trial.tensor(name).steps():
            assert trial.tensor(name).value(step).size


KILLED = """
import os, signal, sys, torch
import smdebug.pytorch as smd
model = torch.nn.Linear(300, 300)
hook = smd.Hook(out_dir=sys.argv[1], save_config=smd.SaveConfig(save_interval=1), save_all=True)
hook.register_module(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.ones(2, 300)).sum()
    loss.backward()
    if step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
"""


@pytest.mark.slow
def test_a_killed_process_leaves_only_whole_steps(run_torch_script: RunScript, run: WrittenRun) -> None:
    done = run_torch_script(KILLED, str(run.path))
    assert done.returncode == -9
    assert run.steps == [0, 1, 2]
    for step in run.steps:
        assert {"Linear_weight", "gradient/Linear_weight", "Linear_output_0"} <= set(run.values(step))
    assert not run.has_ended
    # What the next job finds there: a claim that nobody holds.
    assert (run.path / "claim.smd").exists()


DELETED = """
import shutil, sys, torch
import smdebug.pytorch as smd
model = torch.nn.Linear(2, 2)
hook = smd.Hook(out_dir=sys.argv[1], save_config=smd.SaveConfig(save_interval=1), save_all=True)
hook.register_module(model)
model(torch.ones(1, 2)).sum().backward()
model(torch.ones(1, 2)).sum().backward()
if sys.argv[2] == "close":
    hook.close()
shutil.rmtree(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "leave"])
def test_21_a_deleted_run_is_not_brought_back_when_python_ends(
    run_torch_script: RunScript, run: WrittenRun, how: str
) -> None:
    done = run_torch_script(DELETED, str(run.path), how)
    assert (done.returncode, done.stderr) == (0, "")
    assert not run.path.exists()


INTERRUPTED = """
import os, sys, torch
import smdebug.pytorch as smd
model = torch.nn.Sequential(torch.nn.Linear(30, 30), torch.nn.Linear(30, 30))
hook = smd.Hook(out_dir=sys.argv[1], save_config=smd.SaveConfig(save_interval=1), save_all=True)
hook.register_module(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.ones(2, 30)).sum()
    if step == 3:
        if sys.argv[2] == "raise":
            raise RuntimeError("between the passes")
        os._exit(7)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "exit_code"), [("raise", 1), pytest.param("exit", 7, marks=pytest.mark.nightly)])
def test_steps_before_a_crash_are_whole(how: str, exit_code: int, run_torch_script: RunScript, run: WrittenRun) -> None:
    done = run_torch_script(INTERRUPTED, str(run.path), how)
    assert done.returncode == exit_code
    names = {f"{kind}Sequential_{path}" for kind in ("", "gradient/") for path in ("0.weight", "1.bias")}
    for step in range(3):
        assert names <= set(run.values(step))
    if how == "raise":
        # The interpreter had time to put away what there was of the step.
        assert run.steps == [0, 1, 2, 3]
        assert not any(name.startswith("gradient/") for name in run.values(3))
        assert run.has_ended
        assert "between the passes" in done.stderr
    else:
        assert run.steps == [0, 1, 2]
        assert not run.has_ended
