"""Tests of the hooks in the environments of older framework versions.

The hook's own tests run there, by pytest from this interpreter's packages.
"""

import re
import site
import subprocess
from pathlib import Path

import pytest

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import build_environment

ROOT = Path(__file__).parents[3]
# The packages of this interpreter come last: those of the environment count.
PROGRAM = """
import sys
sys.path[:] = [sys.argv[1], *sys.path, *sys.argv[2].split(":")]
import pytest
code = pytest.main(sys.argv[4:])
framework = sys.modules[sys.argv[3]]
print("TESTED", framework.__version__, framework.__file__)
sys.exit(code)
"""
OF_PYTORCH = ("hook", "model_kinds", "optimizer_state", "loss_scales", "reductions", "copied_models")
PYTORCH = [f"tests/unit/smdebug/pytorch/test_{name}.py" for name in OF_PYTORCH]
XGBOOST = [f"tests/unit/smdebug/xgboost/test_{name}.py" for name in ("hook", "kinds_of_training")]
# What these versions themselves do in another way, with no hook as well.
OTHER_IN_XGBOOST = {
    "test_several_targets": "its trees have one target each",
    "test_quantile_matrices": "its default tree method refuses them",
    "test_trees_of_several_classes_and_categories": "it cannot list trees with categories",
    "test_each_round_is_there_when_it_is_over": "it calls the callbacks in another order",
    "test_early_stopping": "it keeps callbacks in a set, so that chance decides which of them see the last round",
}
OTHER_IN_PYTORCH = {"test_a_scripted_model_can_be_saved_while_it_is_captured": "torch.jit.script warns since 2.10"}

pytestmark = [pytest.mark.versions, pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    ("image", "module", "files", "others"),
    [
        ("sagemaker-xgboost-1.7", "xgboost", XGBOOST, OTHER_IN_XGBOOST),
        *((f"pytorch-training-{version}", "torch", PYTORCH, OTHER_IN_PYTORCH) for version in ("2.3", "2.6")),
    ],
)
def test_the_hooks_tests_pass(
    image: str, module: str, files: list[str], others: dict[str, str], tmp_path: Path
) -> None:
    (definition,) = ImageCatalogue().select([image])
    environment = build_environment(definition)
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=ignore", "--basetemp", str(tmp_path / "run")]
    ran = subprocess.run(
        [
            *(str(environment.python), "-c", PROGRAM, str(ROOT), ":".join(site.getsitepackages()), module),
            *options,
            *("-k", " and ".join(f"not {name}" for name in others), *files),
        ],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"
    assert " passed" in ran.stdout
    # Not that of this interpreter, whose packages are found, too.
    (version, path) = re.findall(r"^TESTED (\S+) (.+)$", ran.stdout, re.MULTILINE)[0]
    assert f"{version.partition('+')[0]}-" in str(definition.version)
    assert Path(path).is_relative_to(environment.site_packages)
