"""Tests of image environments of local processes: built once, and atomically."""

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from container_runtime.file_lock import hold_lock
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.images.installation import ROOT
from container_runtime.images.lock_files import build_header, build_size_line, locate_lock
from container_runtime.images.wheelhouse import key_of_requirements
from container_runtime.process.environment_start import wrap_start
from container_runtime.process.environments import build_environment, locate_environment, needs_environment
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import EnvironmentBuildError
from container_runtime.spec import ContainerSpec
from tests.waiting import wait_until

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
REQUIREMENTS = ("tiny-package==1.0",)
IMAGE_TOML = """
name = "tiny-training"
requirements = ["tiny-package==1.0"]
with_smdebug = true
[links]
"tiny_package/libx.so" = "tiny_package.libs/libx-*.so"
"""
# Unpacks the wheels and checks nothing: it takes a tenth of the time that pip takes.
QUICK_PIP = """
import sys, sysconfig, zipfile
from pathlib import Path
for wheel in Path(sys.argv[sys.argv.index("--find-links") + 1]).glob("tiny*.whl"):
    zipfile.ZipFile(wheel).extractall(sysconfig.get_path("purelib"))
Path(sys.prefix, "told").write_text(" ".join(sys.argv))
"""
STUCK_PIP = "import time; print('pip runs', flush=True); time.sleep(600)"
FAILING_PIP = "raise SystemExit('ERROR: there is no such wheel')"
PIP_THAT_REPEATS = "import sys; raise SystemExit(' '.join(sys.argv))"


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str | Path]) -> None:
    information = f"{name}-{version}.dist-info"
    described = {
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in {**files, **described, f"{information}/RECORD": ""}.items():
            if isinstance(content, Path):
                wheel.write(content, path)
            else:
                wheel.writestr(path, content)


def write_pip(wheels: Path, main_module: str | None = None) -> None:
    """pip's wheel, made of the pip that is installed here; or one that does something else."""
    for old in wheels.glob("pip-*.whl"):
        old.unlink()
    if main_module is not None:
        write_wheel(wheels, "pip", "1.0", {"pip/__main__.py": main_module})
        return
    pip = importlib.metadata.distribution("pip")
    files = [file for file in pip.files or () if file.parts[0] == "pip" and file.suffix not in {".pyc", ".exe"}]
    write_wheel(wheels, "pip", pip.version, {str(file): Path(str(file.locate())) for file in files})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that holds every wheel, so that nothing is fetched."""
    wheels = tmp_path / "cache" / "wheels" / key_of_requirements(REQUIREMENTS)
    wheels.mkdir(parents=True)
    program = "import os, sys, tiny_package as t; print(t.ANSWER, sys.prefix, os.environ['PATH'], sorted(os.environ))"
    files: dict[str, str | Path] = {
        "tiny_package/__init__.py": "ANSWER = 42\n",
        "tiny_package/__main__.py": program,
        "tiny_package.libs/libx-0123.so": "",
    }
    write_wheel(wheels, "tiny_package", "1.0", files)
    write_pip(wheels, QUICK_PIP)
    (wheels / "requirements.txt").write_text("tiny-package==1.0\n")
    return tmp_path / "cache"


@pytest.fixture
def wheels(cache: Path) -> Path:
    return cache / "wheels" / key_of_requirements(REQUIREMENTS)


@pytest.fixture
def catalogue(tmp_path: Path) -> ImageCatalogue:
    (tmp_path / "images" / "tiny").mkdir(parents=True)
    (tmp_path / "images" / "tiny" / "image.toml").write_text(IMAGE_TOML)
    return ImageCatalogue(tmp_path / "images")


@pytest.fixture
def definition(catalogue: ImageCatalogue) -> ImageDefinition:
    (found,) = catalogue
    return found


@pytest.fixture
def runtime(tmp_path: Path, catalogue: ImageCatalogue, cache: Path) -> Iterator[LocalProcesses]:
    made = LocalProcesses(tmp_path / "processes", catalogue, cache)
    yield made
    for container in made.find({}):
        made.remove(container.id)


SPEC = ContainerSpec(name="tiny", image="tiny-training:1", command=("python", "-m", "tiny_package"))


def ask(python: Path, code: str) -> str:
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/", env={})
    return ran.stdout.strip()


@pytest.mark.nightly  # by day, test_what_is_fetched_is_reported_with_its_size shows what pip is told
@pytest.mark.parametrize("damaged", [False, True])
def test_what_is_locked_is_installed_by_its_hash(
    definition: ImageDefinition, cache: Path, wheels: Path, *, damaged: bool
) -> None:
    """A wheel that became another one in the cache is as good as none."""
    (wheel,) = wheels.glob("tiny*.whl")
    digest = "0" * 64 if damaged else hashlib.sha256(wheel.read_bytes()).hexdigest()
    line = f"tiny-package==1.0 --hash=sha256:{digest}"
    locate_lock(definition, PYTHON).write_text(f"{build_header(definition)}\n{line}\n")
    write_pip(wheels)
    (wheels / "requirements.txt").write_text(f"{line}\n")
    wheels.rename(wheels.with_name(key_of_requirements([line], PYTHON)))
    if damaged:
        with pytest.raises(EnvironmentBuildError, match="DO NOT MATCH THE HASHES"):
            build_environment(definition, cache)
    else:
        built = build_environment(definition, cache)
        assert ask(built.python, "import tiny_package; print(tiny_package.ANSWER)") == "42"


def test_built_whole_and_once(definition: ImageDefinition, cache: Path) -> None:
    said: list[str] = []
    assert not locate_environment(definition, cache).is_complete
    built = build_environment(definition, cache, said.append)
    assert built == locate_environment(definition, cache)
    assert built.is_complete
    assert [line.split(":")[0].rsplit(" after ")[0] for line in said] == [
        "building the environment of tiny-training, once",
        "what it takes",
        f"there is no lock file for Python {PYTHON}",
        "installing them",
        "the environment is ready",
    ]
    assert ask(built.python, "import tiny_package; print(tiny_package.ANSWER)") == "42"
    assert "--require-hashes" not in (built.folder / "told").read_text(), "nothing is locked"
    link = built.site_packages / "tiny_package" / "libx.so"
    assert link.resolve() == (built.site_packages / "tiny_package.libs" / "libx-0123.so").resolve()
    said.clear()
    assert build_environment(definition, cache, said.append) == built
    assert said == []


def test_a_long_fetch_is_reported_again(
    definition: ImageDefinition, cache: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def fetch(*_: object) -> Path:
        wait_until(lambda: len([line for line in said if line.startswith("still fetching, after ")]) > 1, "two lines")
        return wheels

    monkeypatch.setattr("container_runtime.process.environments._SILENT_SECONDS", 0.01)
    monkeypatch.setattr("container_runtime.process.environments.fetch_wheels", fetch)
    build_environment(definition, cache, said.append)
    assert "fetching" not in "".join(said[said.index("installing them") :])


def test_what_is_fetched_is_reported_with_its_size(definition: ImageDefinition, cache: Path, wheels: Path) -> None:
    (wheel,) = wheels.glob("tiny*.whl")
    line = f"tiny-package==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    text = f"{build_header(definition)}\n{build_size_line(2_000_000_000)}\n{line}\n"
    locate_lock(definition, PYTHON).write_text(text)
    (wheels / "requirements.txt").write_text(f"{line}\n")
    wheels.rename(wheels.with_name(key_of_requirements([line], PYTHON)))
    said: list[str] = []
    built = build_environment(definition, cache, said.append)
    assert "once: fetching 2000 MB (some 7.0 GB of disk): tiny-package" in said[0]
    told = (built.folder / "told").read_text()
    locked = cache / "wheels" / key_of_requirements([line], PYTHON)
    assert told.endswith(f" --no-deps --require-hashes --requirement {locked / 'requirements.txt'}"), told


def test_it_has_our_smdebug_and_its_pth_file_but_nothing_else_of_ours(definition: ImageDefinition, cache: Path) -> None:
    built = build_environment(definition, cache)
    found = ask(built.python, "from importlib.util import find_spec as f; print(f('smdebug').origin, f('emulator'))")
    assert found == f"{built.site_packages / 'smdebug' / '__init__.py'} None"
    assert (built.site_packages / "smdebug").resolve() == ROOT / "smdebug"
    assert (built.site_packages / "smdebug_autoload.pth").read_text() == (ROOT / "smdebug/autoload.pth").read_text()
    assert ask(built.python, "import importlib.metadata as m; print(m.version('smdebug'))") == "1.0.34+emulator"
    plain = build_environment(replace(definition, name="plain", with_smdebug=False, links={}), cache)
    assert not (plain.site_packages / "smdebug").exists()


def test_the_key_is_made_of_all_that_goes_in(definition: ImageDefinition, cache: Path) -> None:
    others = [
        replace(definition, requirements=("tiny-package==1.1",)),
        replace(definition, with_smdebug=False),
        replace(definition, links={}),
    ]
    assert len({locate_environment(one, cache) for one in (definition, *others)}) == 4
    same = replace(definition, version="2", entrypoint=("train",), environment={"A": "b"})
    assert locate_environment(same, cache) == locate_environment(definition, cache)


def test_what_a_killed_build_left_is_thrown_away(definition: ImageDefinition, cache: Path) -> None:
    left = locate_environment(definition, cache)
    (left.folder / "lib" / "python3.11" / "site-packages" / "smdebug").mkdir(parents=True)
    (left.folder / "half").touch()
    assert not left.is_complete
    built = build_environment(definition, cache)
    assert built.is_complete
    assert not (built.folder / "half").exists()


def test_a_second_builder_waits_and_finds_the_work_done(definition: ImageDefinition, cache: Path) -> None:
    environment = locate_environment(definition, cache)
    environment.folder.mkdir(parents=True)
    said: list[str] = []
    with hold_lock(Path(f"{environment.folder}.lock")):
        second = threading.Thread(target=build_environment, args=(definition, cache, said.append))
        second.start()
        wait_until(lambda: said, "the second builder waits")
        (environment.folder / "complete").touch()
    second.join(60)
    assert not second.is_alive()
    assert said == ["another process builds this image's environment: waiting for it"]


def test_what_pip_says_is_what_the_error_says(definition: ImageDefinition, cache: Path, wheels: Path) -> None:
    write_pip(wheels, FAILING_PIP)
    with pytest.raises(EnvironmentBuildError, match="ERROR: there is no such wheel"):
        build_environment(definition, cache)
    write_pip(wheels, PIP_THAT_REPEATS)
    with pytest.raises(EnvironmentBuildError, match="install --quiet ") as raised:
        build_environment(definition, cache)
    assert "--no-compile" not in str(raised.value), "whoever builds ahead has all of it compiled"
    assert not locate_environment(definition, cache).is_complete


def test_a_link_to_nothing(definition: ImageDefinition, cache: Path) -> None:
    with pytest.raises(EnvironmentBuildError, match=r"a\.so is to be a link to nowhere/\*, which is not there"):
        build_environment(replace(definition, links={"a.so": "nowhere/*"}), cache)


def test_a_cache_that_cannot_be_written(definition: ImageDefinition, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentBuildError, match="cannot be made"):
        build_environment(definition, tmp_path / "file")


def test_an_image_may_need_another_python(definition: ImageDefinition, cache: Path) -> None:
    other = replace(definition, python="3.99")
    assert locate_environment(other, cache) != locate_environment(definition, cache)
    wheels = cache / "wheels" / key_of_requirements(REQUIREMENTS, "3.99")
    wheels.mkdir()
    with pytest.raises(EnvironmentBuildError, match=r"python3\.99 is not on PATH"):
        build_environment(other, cache)


def test_a_program_of_the_image_runs_in_its_environment(tmp_path: Path, cache: Path) -> None:
    """As the XGBoost image's own algorithm does, which has a name below rules_images."""
    program = tmp_path / "images" / "training" / "own" / "program"
    program.mkdir(parents=True)
    (program / "__main__.py").write_text("print('it runs')")
    (program.parent / "image.toml").write_text(IMAGE_TOML)
    (found,) = ImageCatalogue(tmp_path / "images")
    built = build_environment(found, cache)
    command = [str(built.python), "-m", "images.training.own.program"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", env={})
    assert ran.stdout == "it runs\n"


def test_container_builds_its_environment_and_runs_in_it(
    runtime: LocalProcesses, definition: ImageDefinition, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:secret@example.invalid/simple")
    for name in ("first", "second"):
        container = runtime.start(replace(SPEC, name=name, environment={"MINE": "1"}))
        exit_status = runtime.wait(container, 60)
        lines = [line.text for line in runtime.logs(container)]
        assert exit_status is not None
        assert exit_status.code == 0, lines
        assert not runtime.is_preparing(container), "it has come to its command"
        environment = locate_environment(definition, cache)
        answer, prefix, path, variables = lines[-1].split(" ", 3)
        assert (answer, prefix) == ("42", str(environment.folder))
        assert path.startswith(f"{environment.bin}:/usr/local/sbin")
        assert str(Path(sys.executable).parent) not in path.split(":")
        # What pip needed of the emulator's own environment is gone.
        assert variables == "['HOME', 'LANG', 'MINE', 'PATH', 'PIP_PYTHON', 'PYTHONPATH', 'TMPDIR']"
        told = [
            line for line in lines if line.startswith("smdebug-emulator: building the environment of tiny-training")
        ]
        assert len(told) == (1 if name == "first" else 0)


def test_only_what_configures_pip_is_handed_over(
    definition: ImageDefinition, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "MY_TOKEN", "PYTHONPATH"):
        monkeypatch.setenv(name, "theirs")
    for name in ("PIP_INDEX_URL", "https_proxy", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(name, "pip's")
    _, environment = wrap_start(tmp_path, definition.name, ["train"], {"A": "b"}, cache, None, tmp_path)
    handed_over = json.loads(environment.pop("SMDEBUG_EMULATOR_BUILDER_ENVIRONMENT"))
    assert environment == {"A": "b"}
    assert {name for name, value in handed_over.items() if value == "pip's"} == {
        "PIP_INDEX_URL",
        "https_proxy",
        "REQUESTS_CA_BUNDLE",
    }
    assert "theirs" not in handed_over.values()


@pytest.mark.slow
def test_stopping_a_container_that_builds(
    runtime: LocalProcesses, definition: ImageDefinition, cache: Path, wheels: Path
) -> None:
    write_pip(wheels, STUCK_PIP)
    container = runtime.start(SPEC)
    lines = runtime.logs(container)
    while "installing" not in next(lines).text:
        pass
    assert runtime.is_preparing(container)
    began = time.monotonic()
    runtime.stop(container, 120)
    assert time.monotonic() - began < 60
    assert runtime.wait(container, 0) is not None
    assert not locate_environment(definition, cache).is_complete
    # Nothing of it is in the way of the next.
    write_pip(wheels, QUICK_PIP)
    again = runtime.start(replace(SPEC, name="again"))
    exit_status = runtime.wait(again, 60)
    assert exit_status is not None
    assert exit_status.code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "pip", "code", "said"),
    [
        (("python",), FAILING_PIP, 1, "cannot be built: .*ERROR: there is no such wheel"),
        # A job that waits compiles what it imports.
        (("python",), PIP_THAT_REPEATS, 1, "cannot be built: .*install .*--no-compile "),
        (("no-such-program",), QUICK_PIP, 127, "'no-such-program' is not an executable file on PATH=/"),
    ],
    ids=["pip fails", "what pip is told", "no program"],
)
def test_container_that_cannot_start(
    runtime: LocalProcesses, wheels: Path, command: tuple[str, ...], pip: str, code: int, said: str
) -> None:
    write_pip(wheels, pip)
    container = runtime.start(replace(SPEC, command=command))
    exit_status = runtime.wait(container, 60)
    assert exit_status is not None
    assert exit_status.code == code
    text = " ".join(line.text for line in runtime.logs(container))
    assert re.search(said, text), text


@pytest.mark.parametrize(
    ("requirements", "needed"),
    [
        ((), False),
        (("pytest",), False),
        (("pytest>=1,<99",), False),
        ((f"pytest=={pytest.__version__}",), False),
        (("pytest==0.1",), True),
        (("pytest", "no-such-package>=1"), True),
        (("torch==2.13.0",), False),
    ],
)
def test_an_environment_is_needed_where_a_requirement_is_not_met(requirements: tuple[str, ...], needed: bool) -> None:
    definition = ImageDefinition(name="x", folder=Path(), repositories=("x",), requirements=requirements)
    assert needs_environment(definition) is needed
