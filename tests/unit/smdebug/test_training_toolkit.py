"""Program `train` beside the toolkit's own: the same ends, without TensorFlow."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from smdebug.absent_modules import describe_absent, describe_absent_launcher

OURS, TOOLKITS = "smdebug.training_toolkit", "sagemaker_training.cli.train"
# A TensorFlow that writes down which processes import it.
TENSORFLOW = """
import os, sys
with open(os.environ["MARK"], "a") as mark:
    mark.write(os.path.basename(sys.argv[0]) + "\\n")
"""
ERRORS = """
class OpError(Exception): pass
class NotFoundError(OpError): pass
"""
# What makes the toolkit keep what the script prints, and look in it for the names of exceptions.
CAPTURES = """
from sagemaker_training import entry_point, environment
def main():
    env = environment.Environment()
    entry_point.run(env.module_dir, env.user_entry_point, env.to_cmd_args(), env.to_env_vars(), capture_error=True)
"""
MPI = {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "2"}
# Each process says who it is, after all have spoken.
RANKS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
with open(f"rank-{world.rank}", "w") as file:
    file.write(f"{world.rank} of {world.size}: {world.allreduce(world.rank + 1)}")
"""
RAISES = "from tensorflow.python.framework.errors_impl import NotFoundError\nraise NotFoundError('no such op')"
# Sources of TensorFlow's errors that name none: no file, and one without a class.
MORE_SOURCES = (None, "from other import errors")
# The programs of this interpreter, and this machine's.
BESIDE = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# Before each line of the emulator's own.
SAID = "smdebug-emulator: "
# "2026-01-01 00:00:00,000 " before each line of the toolkit's.
_STAMP = 24


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    framework = folder / "tensorflow" / "python" / "framework"
    framework.mkdir(parents=True)
    (folder / "tensorflow" / "__init__.py").write_text(TENSORFLOW)
    (framework.parent / "__init__.py").touch()
    (framework / "__init__.py").touch()
    (framework / "errors_impl.py").write_text(ERRORS)
    (folder / "captures.py").write_text(CAPTURES)
    return folder


def train(
    module: str,
    base: Path,
    packages: Path,
    script: str,
    framework_module: str = "",
    *,
    mpi: Mapping[str, str] | None = None,
    path: str = BESIDE,
) -> dict[str, object]:
    """What became of a script: exit code, failure file, lines of the log, and who imported TensorFlow."""
    (base / "input" / "config").mkdir(parents=True)
    (base / "code").mkdir()
    (base / "output").mkdir()
    (base / "code" / "script.py").write_text(script)
    hyperparameters = {"sagemaker_program": "script.py", "sagemaker_submit_directory": str(base / "code")}
    hyperparameters |= mpi or {}
    (base / "input" / "config" / "hyperparameters.json").write_text(json.dumps(hyperparameters))
    resources = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
    (base / "input" / "config" / "resourceconfig.json").write_text(json.dumps(resources))
    (base / "input" / "config" / "inputdataconfig.json").write_text("{}")
    environment = {
        "PATH": path,
        "PYTHONPATH": str(packages),
        "SAGEMAKER_BASE_DIR": str(base),
        "SAGEMAKER_TRAINING_MODULE": framework_module,
        "SM_STUDIO_LOCAL_MODE": "true",
        "AWS_REGION": "us-east-1",
        "MARK": str(base / "mark"),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", module], cwd=base, env=environment, capture_output=True, text=True, check=False
    )
    failure, mark = base / "output" / "failure", base / "mark"
    text = re.sub(r'File ".*"', "File", failure.read_text()) if failure.exists() else None
    return {
        "code": done.returncode,
        "failure": text and text.replace(str(base), "BASE"),
        "succeeded": (base / "output" / "success").exists(),
        "last": [line[_STAMP:] for line in done.stderr.replace(str(base), "BASE").strip().splitlines()[-1:]],
        "said": [line.removeprefix(SAID) for line in done.stdout.splitlines() if line.startswith(SAID)],
        "imported by": mark.read_text().split() if mark.exists() else [],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "framework_module"),
    [
        pytest.param("print('done')", "", marks=pytest.mark.nightly),
        pytest.param("import sys; sys.exit(3)", "", marks=pytest.mark.nightly),
        pytest.param("raise ValueError('no')", "", marks=pytest.mark.nightly),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "", marks=pytest.mark.nightly),
        pytest.param(RAISES, "", marks=pytest.mark.nightly),
        (RAISES, "captures:main"),
        pytest.param("import sys; sys.exit('XlaRuntimeError: INTERNAL')", "captures:main", marks=pytest.mark.nightly),
        pytest.param("raise KeyError('no')", "captures:main", marks=pytest.mark.nightly),
        pytest.param("print('done')", "missing:main", marks=pytest.mark.nightly),
    ],
)
def test_a_script_ends_as_under_the_toolkit_and_tensorflow_is_imported_by_scripts_alone(
    tmp_path: Path, packages: Path, script: str, framework_module: str
) -> None:
    theirs = train(TOOLKITS, tmp_path / "theirs", packages, script, framework_module)
    ours = train(OURS, tmp_path / "ours", packages, script, framework_module)
    scripts = ["script.py"] if "import NotFoundError" in script else []
    assert ours.pop("imported by") == scripts
    imported = [] if framework_module.startswith("missing") else ["train.py", *scripts]
    assert theirs.pop("imported by") == imported
    assert ours == theirs
    if (script, framework_module) == (RAISES, "captures:main"):
        # Not the name of the toolkit's own error.
        assert ours["code"] == 1
        assert str(ours["failure"]).startswith("NotFoundError:\nExitCode 1\n")


@pytest.mark.nightly  # a TensorFlow without the file is the rarest of what ends as ever
@pytest.mark.parametrize("content", ["class", *MORE_SOURCES])
def test_a_tensorflow_whose_source_says_nothing_is_imported_as_ever(
    tmp_path: Path, packages: Path, content: str | None
) -> None:
    path = packages / "tensorflow" / "python" / "framework" / "errors_impl.py"
    path.unlink() if content is None else path.write_text(content)
    theirs = train(TOOLKITS, tmp_path / "theirs", packages, "print('done')")
    ours = train(OURS, tmp_path / "ours", packages, "print('done')")
    # Where the source is damaged, each holds a traceback, and one of them passes through our module.
    reasons = [str(each.pop("failure")).splitlines()[-1] for each in (ours, theirs)]
    assert reasons[0] == reasons[1]
    assert ours | {"imported by": ["train.py"]} == theirs


@pytest.mark.slow
def test_what_the_image_lacks_is_said_before_the_script_fails_of_it(tmp_path: Path, packages: Path) -> None:
    ended = train(OURS, tmp_path / "ours", packages, "import os, horovod.torch")
    (said,) = cast("list[str]", ended["said"])
    assert said.startswith("the script imports horovod, which AWS's image has and this one does not: use torch.dist")
    assert ended["code"] == 1


@pytest.mark.parametrize(
    ("installed", "imports", "said"),
    [
        (None, "tensorflow", ["only once the script has imported tensorflow_io"]),
        (None, "tensorflow, tensorflow_io", []),
        ("0.32.0", "tensorflow", []),
        ("0.36.0", "tensorflow", ["only once the script has imported tensorflow_io"]),
        ("0.36.0", "tensorflow, tensorflow_io", []),
    ],
)
def test_a_path_of_s3_that_tensorflow_cannot_open_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None, imports: str, said: list[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import {imports}\nprint('--model_dir')")
    if installed is not None:
        (tmp_path / "packages" / "tensorflow_io").mkdir(parents=True)
        (tmp_path / "packages" / "tensorflow_io" / "__init__.py").touch()
        about = tmp_path / "packages" / f"tensorflow_io-{installed}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tensorflow-io\nVersion: {installed}\n")
        monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    found = list(describe_absent(script, ["train.py", "--model_dir", "s3://bucket/model"]))
    assert len(found) == len(said)
    for sentence, part in zip(found, said, strict=True):
        assert part in sentence


def test_a_captured_script_has_a_file_system_for_paths_of_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow\nprint('--model_dir')")
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(script))
    assert list(describe_absent(script, ["train.py", "--model_dir", "s3://bucket/model"])) == []


@pytest.mark.slow
def test_an_absent_launcher_is_said(tmp_path: Path, packages: Path) -> None:
    ended = train(OURS, tmp_path / "ours", packages, "print('done')", mpi=MPI, path="")
    assert ended["said"] == [
        "the job asks for MPI, and there is no mpirun here: use distribution={'torch_distributed': …}"
    ]


def test_mpi_on_several_hosts_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", BESIDE)
    hosts = {"hosts": ["algo-1", "algo-2"]}
    assert "reach each other by SSH" in str(describe_absent_launcher({"sagemaker_mpi_enabled": "true"}, hosts))
    assert describe_absent_launcher({"sagemaker_mpi_enabled": "false"}, hosts) is None


@pytest.mark.slow
def test_a_script_is_started_by_mpirun_once_a_process(tmp_path: Path, packages: Path) -> None:
    base = tmp_path / "ours"
    ended = train(OURS, base, packages, RANKS, mpi=MPI | {"sagemaker_mpi_custom_mpi_options": "-verbose -x MARK"})
    assert (ended["code"], ended["failure"], ended["said"]) == (0, None, []), ended
    assert [(base / "code" / f"rank-{rank}").read_text() for rank in (0, 1)] == ["0 of 2: 3", "1 of 2: 3"]


@pytest.mark.nightly  # the error is the toolkit's own, and mpirun is started as in the test above
def test_a_process_of_mpi_that_fails_ends_the_others(tmp_path: Path, packages: Path) -> None:
    script = RANKS + "if world.rank == 1: raise ValueError('no')\nworld.barrier()"
    ended = train(OURS, tmp_path / "ours", packages, script, mpi=MPI)
    assert ended["code"] == 1
    assert "ExecuteUserScriptError" in str(ended["failure"])


@pytest.mark.nightly  # the next test imports the same package
def test_a_substitute_is_there_for_the_script_that_imports_it(tmp_path: Path, packages: Path) -> None:
    script = "from sagemaker_containers import entry_point; print(entry_point.__file__)"
    ended = train(OURS, tmp_path / "ours", packages, script)
    assert (ended["code"], ended["said"]) == (0, [])


@pytest.mark.slow
def test_the_older_toolkit_knows_the_job(tmp_path: Path, packages: Path) -> None:
    script = (
        "import os, sagemaker_containers\n"
        "env = sagemaker_containers.training_env()\n"
        "assert (env.current_host, env.model_dir) == (os.environ['SM_CURRENT_HOST'], os.environ['SM_MODEL_DIR'])\n"
        "assert env.current_host in env.hosts and env.channel_input_dirs is not None and env.num_gpus == 0\n"
    )
    ended = train(OURS, tmp_path / "ours", packages, script)
    assert (ended["code"], ended["said"]) == (0, [])
