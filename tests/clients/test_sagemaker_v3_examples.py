"""Tests of the page and the examples of the SageMaker SDK (version 3).

The page is docs/how_to/use_the_sdk_v3.md.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.shared.environments import build_environment
from tests.running_emulator import RunningEmulator

CHECKOUT = Path(__file__).parents[2]
EXAMPLE = CHECKOUT / "examples" / "sagemaker_v3"
PAGE = CHECKOUT / "docs" / "how_to" / "use_the_sdk_v3.md"
VERDICTS = {
    "pytorch": "{'VanishingGradient': 'NoIssuesFound'}",
    "tensorflow": "{'LossNotDecreasing': 'NoIssuesFound'}",
    "xgboost": "{'TreeDepth': 'NoIssuesFound'}",
    "mxnet": "{'DeadRelu': 'NoIssuesFound'}",
}


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of an environment with the SDK."""
    return str(build_environment("sagemaker-v3", Path(__file__).with_name("requirements-sagemaker-v3.txt")))


def run_script(emulator: RunningEmulator, command: list[str], folder: Path) -> str:
    """Run a command as a user does, and return what it printed last."""
    run = [sys.executable, "-m", "emulator", "run", "--state-dir", str(emulator.state_dir), "--", *command]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + emulator.log_text()
    return done.stdout.splitlines()[-1]


@pytest.mark.nightly
@pytest.mark.any_back_end
@pytest.mark.parametrize("framework", VERDICTS)
def test_each_framework_is_trained_and_judged(
    framework: str, served: RunningEmulator, python: str, tmp_path: Path
) -> None:
    last = run_script(served, [python, "-W", "ignore", str(EXAMPLE / "train.py"), framework], tmp_path)
    assert last.startswith(f"Completed: {VERDICTS[framework]}. Tensors: s3://sagemaker-us-east-1-")


@pytest.mark.nightly
@pytest.mark.any_back_end
def test_the_page_runs(served: RunningEmulator, python: str, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (trainer, *snippets) = re.findall(r'^```python(?: title="debugged_trainer.py")?\n(.*?)^```$', text, re.M | re.S)
    assert trainer == (EXAMPLE / "debugged_trainer.py").read_text(encoding="utf-8")
    (tmp_path / "debugged_trainer.py").write_text(trainer)
    (tmp_path / "page.py").write_text("\n".join(snippets))
    assert run_script(served, [python, "-W", "ignore", "page.py"], tmp_path) == "Completed ['NoIssuesFound']"


@pytest.mark.nightly
@pytest.mark.any_back_end
def test_a_session_of_its_own_and_what_is_reported_without_the_sdk(
    served: RunningEmulator, python: str, tmp_path: Path
) -> None:
    source = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from sdk_compat import sagemaker_v2, sagemaker_v3\n"
        "assert sagemaker_v3.is_installed()\n"
        "from sdk_compat.emulator_client import EmulatorClient\n"
        f"session = EmulatorClient({served.endpoint_url!r}, 'Role').open_sagemaker_session()\n"
        "assert session.sagemaker_config['SageMaker']['PythonSDK']['Modules']['TelemetryOptOut']\n"
        f"try: sagemaker_v2.local_session({served.endpoint_url!r})\n"
        "except ImportError as error: print(error)\n"
        "print(type(session).__module__, session.default_bucket())\n"
    )
    clean = {"HOME": str(tmp_path), "AWS_PROFILE": "of-the-user"}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", source], env=clean, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "sagemaker.core.helper.session_helper sagemaker-us-east-1-123456789012"
    assert "this needs version 2 of the SageMaker SDK" in done.stdout
