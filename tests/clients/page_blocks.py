"""Fenced blocks of the docs pages, and how a reader runs them."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
# Other tests run them, or they end only when somebody ends them.
ELSEWHERE = ("smdebug-emulator demo", "smdebug-emulator import", "smdebug-emulator tensorboard")
# What a reader puts in the place of what a page calls theirs.
FILLED = """
import tempfile
from pathlib import Path

from sagemaker.debugger import CollectionConfig, Rule, rule_configs
from sagemaker.pytorch import PyTorch


def build_my_estimator(session, role):
    script = Path(tempfile.mkdtemp(), "train.py")
    script.write_text('''
import torch
network, loss = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss(network(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    optimizer.step()
''')
    losses = CollectionConfig("losses", {"save_interval": "5"})
    return PyTorch(
        str(script), sagemaker_session=session, role=role, instance_count=1, instance_type="ml.m5.large",
        framework_version="2.8.0", py_version="py312",
        rules=[Rule.sagemaker(rule_configs.loss_not_decreasing(), collections_to_save=[losses])],
    )


"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the file that its title names, and its text."""

    language: str
    file: str | None
    text: str


def read_blocks(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r'^```(\S*)(?: title="([^"]*)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    return [Block(language, title or None, body) for language, title, body in found]


def run_in(
    folder: Path, command: list[str], state_dir: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with this interpreter's programs before the machine's.

    Args:
        folder: the current and the home folder.
        command: what is run.
        state_dir: the state folder of the emulator that it uses.
        more: variables that go before those of this process.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONWARNINGS": "ignore",
        "SMDEBUG_EMULATOR_STATE_DIR": str(state_dir),
        **(more or {}),
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=560, check=False
    )


def run_page(page: str, folder: Path, state_dir: Path, more: Mapping[str, str] | None = None) -> None:
    """Write the files of a page, run each of its shell blocks by itself, then its Python in its order, as one program.

    Args:
        page: its path below ``docs``.
        folder: an empty one.
        state_dir: the state folder of an emulator that runs.
        more: variables, as for ``run_in``.
    """
    blocks = read_blocks(page)
    for block in blocks:
        if block.file and "," not in block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FILLED * ("build_my_estimator" in block.text) + block.text)
    for number, block in enumerate(blocks):
        if block.language == "sh":
            lines = [line for line in block.text.splitlines() if not line.startswith(ELSEWHERE)]
            # One that starts an emulator has a state folder of its own.
            is_own = any(" start " in line for line in lines)
            own_dir = folder / f"state-{number}" if is_own else state_dir
            done = run_in(folder, ["bash", "-euo", "pipefail", "-c", "\n".join(lines)], own_dir, more)
            assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
    snippets = [
        block.text
        for block in blocks
        if block.language == "python"
        and not (block.file or "").startswith("tests/")
        and "in the image" not in str(block.file)
    ]
    if snippets:
        (folder / "page.py").write_text("\n".join(snippets))
        done = run_in(folder, ["smdebug-emulator", "run", "--", "python", "page.py"], state_dir, more)
        assert done.returncode == 0, f"{page}\n{done.stdout}\n{done.stderr}"
