"""Tests of PyTorch runs on a system without the modules of Unix."""

import pytest

from tests.unit.smdebug.scripts import RunScript
from tests.unit.smdebug.written_run import WrittenRun
from tests.unit.test_other_platforms import WITHOUT

# In a fork of an interpreter with PyTorch, since Linux's build of it needs these modules.
TRAINING = """
import torch
from torch import nn
from smdebug.pytorch import Hook, SaveConfig
from smdebug.trials import create_trial

hook = Hook(out_dir=os.environ["RUN"], save_all=True, save_config=SaveConfig(save_interval=1))
net = nn.Linear(2, 1)
hook.register_module(net)
for step in range(3):
    net(torch.ones(1, 2)).sum().backward()
hook.close()
print(create_trial(os.environ["RUN"]).steps(), os.listdir(os.environ["RUN"]))
"""


@pytest.mark.slow
def test_a_run_is_written_and_read(run: WrittenRun, run_torch_script: RunScript) -> None:
    done = run_torch_script(WITHOUT + TRAINING, RUN=str(run.path))
    assert done.returncode == 0, done.stderr
    assert "[0, 1, 2]" in done.stdout
    assert "this file system has no locks" in done.stdout
    assert "claim.smd" not in done.stdout.splitlines()[-1]
