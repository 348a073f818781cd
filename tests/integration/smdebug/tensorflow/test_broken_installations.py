"""Tests of scripts beside a broken or outdated TensorFlow or Keras.

It is broken, half installed, or older than its numpy allows; the scripts are unmodified.
"""

import sys
from pathlib import Path

import pytest

from tests.unit.smdebug.scripts import START, RunScript, WriteConfig, build_script_runner
from tests.unit.smdebug.written_run import WrittenRun

TAPES = "class GradientTape:\n    _push_tape = _pop_tape = gradient = lambda *given: None\n"
# What lies in place of the package, what its import says without smdebug, and whether smdebug says that it needs more.
INSTALLATIONS = {
    "an empty folder": ({"tensorflow/left_over.txt": ""}, "[]", True),
    "no submodule": (
        {"tensorflow/__init__.py": "from tensorflow.python import pywrap_tensorflow"},
        "ModuleNotFoundError No module named 'tensorflow.python'",
        False,
    ),
    "no library": (
        {"tensorflow.py": "raise ImportError('libtensorflow: no such file')"},
        "ImportError libtensorflow: no such file",
        False,
    ),
    "another numpy": (
        {"tensorflow.py": "raise RuntimeError('API version 0x10')"},
        "RuntimeError API version 0x10",
        False,
    ),
    "a name that numpy had": (
        {"tensorflow.py": "import errno\nerrno.typeDict"},
        "AttributeError module 'errno' has no attribute 'typeDict'",
        False,
    ),
    "cut off": ({"tensorflow.py": "def broken(:"}, "SyntaxError invalid syntax (tensorflow.py, line 1)", False),
    "no tapes": ({"tensorflow.py": "value = 7"}, "['value']", True),
    "no graphs": ({"tensorflow.py": TAPES}, "['GradientTape']", True),
    "names that fail late": ({"tensorflow.py": "def __getattr__(name): raise ImportError(name)"}, "[]", True),
}
# Without what is really installed, which an empty folder does not hide.
IMPORTS = """
import sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path]
for _ in range(2):
    try:
        import tensorflow
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print(sorted(name for name in vars(tensorflow) if not name.startswith("_")))
sys.exit(3)
"""
KERAS = """
class backend:
    backend = staticmethod(lambda: "tensorflow")
class callbacks:
    class Callback: pass
    class CallbackList:
        def __init__(self, callbacks=None, add_history=False, add_progbar=False, model=None, **params):
            self.callbacks = list(callbacks or ())
"""
FITS = """
import keras, sys
for _ in range(3):
    assert keras.callbacks.CallbackList([], add_history=True, model=object()).callbacks == []
sys.exit(3)
"""


def lay_out(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def run_beside(tmp_path: Path) -> RunScript:
    # Its folder is before all others, those of what is really installed included.
    return build_script_runner(sys.executable, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", INSTALLATIONS)
def test_an_import_goes_as_without_a_configuration(
    kind: str, run_beside: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path
) -> None:
    files, expected, is_said = INSTALLATIONS[kind]
    lay_out(tmp_path, files)
    done = run_beside(START + IMPORTS, SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == [expected, expected]
    said = done.stderr.splitlines()
    assert len(said) == is_said
    assert all(line.startswith("smdebug: nothing is captured in process") for line in said)
    assert not run.path.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        ("", "AttributeError: module 'keras' has no attribute '__version__'"),
        ("__version__ = '3.0.0'\n", "module 'keras' has no attribute"),
        ("__version__ = 'nightly'\n", "ValueError"),
    ],
    ids=["no version", "no layers", "a version that is not a number"],
)
def test_a_keras_that_lacks_what_a_hook_needs_trains(
    lacks: str, says: str, run_beside: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path
) -> None:
    # An empty folder of TensorFlow, too: neither is what it was.
    lay_out(tmp_path, {"keras.py": lacks + KERAS, "tensorflow/left_over.txt": ""})
    done = run_beside(START + FITS, SMDEBUG_CONFIG_FILE_PATH=config())
    assert (done.returncode, done.stderr) == (3, ""), done.stderr
    (line,) = done.stdout.splitlines()
    assert "Not saved: everything" in line
    assert says in line
    assert not run.path.exists()
