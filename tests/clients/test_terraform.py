"""Terraform with its AWS provider: apply, an empty second plan, destroy, twice.

Its configuration is in ``tests/clients/terraform``. Skipped where Terraform or the provider is not installed; the
provider is looked for where Terraform looks, and in ``SMDEBUG_EMULATOR_TEST_TERRAFORM_PLUGINS``.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from docs_site.client_operations import TERRAFORM, read_lists
from tests.running_emulator import RunningEmulator

CONFIGURATION = Path(__file__).with_name("terraform")
CODE = "def handler(event, context):\n    return 1\n"
PROVIDER = "*/hashicorp/aws/*/*/terraform-provider-aws*"
_CALLED = re.compile(r"x_amz_target=SageMaker\.(\w+)")


def find_provider() -> Path | None:
    """Find the folder that has the provider, below a host's name."""
    named = ("SMDEBUG_EMULATOR_TEST_TERRAFORM_PLUGINS", "TF_PLUGIN_CACHE_DIR")
    folders = [Path(os.environ[name]) for name in named if os.environ.get(name)]
    folders += [Path.home() / ".terraform.d/plugins", Path.home() / ".local/share/terraform/plugins"]
    folders += [Path("/usr/local/share/terraform/plugins"), Path("/usr/share/terraform/plugins")]
    return next((folder for folder in folders if any(folder.glob(PROVIDER))), None)


class Terraform:
    """The configuration in a folder of its own, and commands run there by ``smdebug-emulator run``."""

    def __init__(self, program: str, folder: Path, served: RunningEmulator, mirror: Path) -> None:
        self._program, self._folder, self._served = program, folder, served
        shutil.copytree(CONFIGURATION, folder, dirs_exist_ok=True)
        (folder / "files").mkdir()
        (folder / "files/m.py").write_text(CODE)
        for name, member in (("m", "m.py"), ("layer", "python/of_layer.py")):
            with zipfile.ZipFile(folder / f"files/{name}.zip", "w") as archive:
                archive.writestr(zipfile.ZipInfo(member), CODE)
        (folder / "cli.tfrc").write_text(
            f'provider_installation {{\n  filesystem_mirror {{ path = "{mirror}" }}\n'
            '  direct { exclude = ["*/*"] }\n}\n'
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_"))}
        self._environment = kept | {
            "TF_CLI_CONFIG_FILE": str(folder / "cli.tfrc"),
            "CHECKPOINT_DISABLE": "1",
            "TF_LOG_PROVIDER": "DEBUG",
            "TF_LOG_PATH": str(folder / "terraform.log"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }

    def run(self, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "emulator", "run", "--state-dir", str(self._served.state_dir), "--"]
        command += [self._program, *arguments, "-no-color"]
        done = subprocess.run(
            command,
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=560,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def list_called(self) -> set[str]:
        """List the operations of SageMaker that the provider has called."""
        log = (self._folder / "terraform.log").read_text(errors="replace")
        return set(_CALLED.findall(log))


@pytest.fixture
def terraform(tmp_path: Path, start_emulator: Callable[..., RunningEmulator]) -> Terraform:
    program, mirror = shutil.which("terraform"), find_provider()
    if program is None or mirror is None:
        pytest.skip("terraform is not on PATH, or its provider hashicorp/aws is in no plugin folder")
    return Terraform(program, tmp_path / "configuration", start_emulator("process"), mirror)


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_what_is_applied_is_planned_empty_destroyed_and_applied_again(terraform: Terraform) -> None:
    code, output = terraform.run("init")
    assert code == 0, output
    for _ in range(2):
        code, output = terraform.run("apply", "-auto-approve")
        assert code == 0, output
        assert "Apply complete!" in output
        # 2: there are changes.
        code, output = terraform.run("plan", "-detailed-exitcode")
        assert code == 0, output
        code, output = terraform.run("destroy", "-auto-approve")
        assert code == 0, output
    assert terraform.list_called() - set(read_lists()[TERRAFORM]) == set(), "docs_site/client_operations.json lacks"
