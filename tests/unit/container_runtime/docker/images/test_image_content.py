"""Tests of image keys and build contexts."""

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from container_runtime.docker.images.image_build import Build, plan_builds
from container_runtime.docker.images.image_content import hash_parts, key_of_contents, read_files, write_context
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import DEFINITIONS_FOLDER, ROOT, collect_smdebug
from container_runtime.images.wheelhouse import key_of_requirements


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small installation of the same shape."""
    shutil.copytree(DEFINITIONS_FOLDER, tmp_path / "rules_images", ignore=shutil.ignore_patterns("*.pyc.*"))
    for package in ("container_runtime", "emulator", "sdk_compat", "smdebug"):
        (tmp_path / package).mkdir()
    (tmp_path / "smdebug" / "__init__.py").write_text("")
    (tmp_path / "smdebug" / "autoload.pth").write_text("")
    (tmp_path / "smdebug_emulator.py").write_text("")
    return tmp_path


def plan(checkout: Path) -> dict[str, Build]:
    builds = plan_builds(ImageCatalogue(checkout / "rules_images"), checkout)
    return {build.definition.name: build for build in builds}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def add_module(checkout: Path) -> None:
    (checkout / "smdebug" / "new.py").write_text("")


def add_requirement(checkout: Path) -> None:
    edit(checkout / "rules_images/lambda/image.toml", '"boto3', '"six", "boto3')
    # As `make lock` does.
    for lock in (checkout / "rules_images/lambda").glob("*.lock"):
        edit(lock, "boto3>=1.44,<2\n", "boto3>=1.44,<2 six\nsix==1.17.0 --hash=sha256:0\n")


def change_entry_point(checkout: Path) -> None:
    edit(checkout / "rules_images/lambda/image.toml", 'awslambdaric"]\n', 'awslambdaric", "x"]\n')


def leave_bytecode(checkout: Path) -> None:
    (checkout / "smdebug" / "__pycache__").mkdir()
    (checkout / "smdebug" / "__pycache__" / "x.pyc").write_text("")


TRAINING = {definition.name for definition in ImageCatalogue(DEFINITIONS_FOLDER / "training")}
EMULATOR = {"emulator"}
RULES = {"sagemaker-debugger-rules", "sagemaker-debugger-rule-evaluator"}


@pytest.mark.parametrize(
    ("change", "rebuilt", "bases"),
    [
        (add_module, TRAINING | RULES | EMULATOR, set()),
        (add_requirement, {"lambda"} | EMULATOR, {"lambda"}),
        (change_entry_point, {"lambda"} | EMULATOR, set()),
        (leave_bytecode, set(), set()),
    ],
)
def test_only_what_a_change_reaches_is_rebuilt(
    checkout: Path, change: Callable[[Path], None], rebuilt: set[str], bases: set[str]
) -> None:
    before = plan(checkout)
    change(checkout)
    after = plan(checkout)
    assert {name for name in after if after[name].key != before[name].key} == rebuilt
    assert {name for name in after if after[name].base != before[name].base} == bases


def test_both_rule_images_stand_on_one_base() -> None:
    builds = plan(ROOT)
    assert len({builds[name].base for name in RULES}) == 1


def test_key_tells_names_from_bytes() -> None:
    assert hash_parts([("a", b"b")]) != hash_parts([("ab", b"")])
    assert hash_parts([], "a", "b") != hash_parts([], "ab")


def test_key_of_requirements_does_not_depend_on_their_order() -> None:
    assert key_of_requirements(["a", "b"]) == key_of_requirements(["b", "a"])
    assert key_of_requirements(["a"]) != key_of_requirements(["a", "b"])


def test_key_of_smdebug_follows_a_file(checkout: Path) -> None:
    before = key_of_contents(collect_smdebug(checkout))
    (checkout / "smdebug" / "__init__.py").write_text("x = 1\n")
    assert key_of_contents(collect_smdebug(checkout)) != before


def test_a_wheel_and_its_checkout_build_the_same_images(checkout: Path, tmp_path: Path) -> None:
    """pip puts the line of a checkout's smdebug/autoload.pth where Python looks for it, and nowhere else."""
    wheel = tmp_path / "site-packages"
    shutil.copytree(checkout / "rules_images", wheel / "rules_images")
    for package in ("container_runtime", "emulator", "sdk_compat", "smdebug"):
        shutil.copytree(checkout / package, wheel / package)
    shutil.copy2(checkout / "smdebug_emulator.py", wheel)
    (wheel / "smdebug" / "autoload.pth").rename(wheel / "smdebug_autoload.pth")
    of_wheel, of_checkout = plan(wheel), plan(checkout)
    assert {name: of_wheel[name].key for name in of_wheel} == {name: of_checkout[name].key for name in of_checkout}
    contexts = []
    for root in (checkout, wheel):
        file = io.BytesIO()
        write_context(file, collect_smdebug(root))
        contexts.append(file.getvalue())
    assert contexts[0] == contexts[1]


@pytest.mark.parametrize("name", ["smdebug/autoload.pth", "smdebug/__init__.py", "smdebug/data.json"])
def test_key_follows_every_file_that_goes_in(checkout: Path, name: str) -> None:
    before = plan(checkout)
    (checkout / name).write_text("changed\n")
    after = plan(checkout)
    assert {each for each in after if after[each].key != before[each].key} == TRAINING | RULES | EMULATOR


def test_files_are_read_sorted(tmp_path: Path) -> None:
    for name in ("b", "a", "sub/c", "left-out"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert read_files(tmp_path, {"left-out"}) == [("a", b"a"), ("b", b"b"), ("sub/c", b"sub/c")]


def test_context_is_the_same_for_the_same_contents(tmp_path: Path) -> None:
    contexts = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "file").write_text("x")
        (folder / "file").chmod(0o600 if number else 0o644)
        file = io.BytesIO()
        write_context(file, {"Dockerfile": b"FROM x", "folder": folder})
        contexts.append(file.getvalue())
    assert contexts[0] == contexts[1]
    with tarfile.open(fileobj=io.BytesIO(contexts[0])) as tar:
        assert tar.getnames() == ["Dockerfile", "folder", "folder/file"]


def test_a_folder_goes_into_a_context_without_bytecode(tmp_path: Path) -> None:
    (tmp_path / "program" / "__pycache__").mkdir(parents=True)
    (tmp_path / "program" / "__pycache__" / "a.pyc").write_bytes(b"")
    (tmp_path / "program" / "a.py").write_text("")
    file = io.BytesIO()
    write_context(file, {"program": tmp_path / "program"})
    with tarfile.open(fileobj=file) as tar:
        assert tar.getnames() == ["program", "program/a.py"]
