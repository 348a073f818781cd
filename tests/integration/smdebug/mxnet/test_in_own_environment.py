"""Runner of the checks of `in_mxnet`, in the environment of MXNet's image.

MXNet cannot be installed beside the emulator.
"""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.integration.smdebug.mxnet.environment import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

CHECKS = Path(__file__).parent / "in_mxnet"
# What pytest is made of; all of it is plain Python, and runs under any interpreter.
PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")


@pytest.fixture(scope="module")
def path_with_pytest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pytest-alone")
    for name in PYTEST:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / (name if source.is_dir() else source.name)).symlink_to(source)
    return folder


def test_checks_pass(mxnet_python: Path, path_with_pytest: Path, tmp_path: Path) -> None:
    checks = sorted(path.name for path in CHECKS.glob("check_*.py"))
    assert checks
    ran = subprocess.run(
        [str(mxnet_python), "-m", "pytest", "--basetemp", str(tmp_path / "checks"), "-c", "pytest.ini", *checks],
        cwd=CHECKS,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{path_with_pytest}:{CHECKS}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    assert " passed" in ran.stdout
