"""Containers forked from a warm interpreter, beside those that start cold."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import psutil
import pytest

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.supervised import read_supervisor_pid
from container_runtime.process.warm_interpreters import WarmInterpreter, WarmOptions
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.warm import warm_interpreter
from tests.integration.container_runtime.process.warm_programs import ENDS, PROGRAMS, SEES, WAITS
from tests.memory_group import hold_memory_group
from tests.waiting import wait_until

KINDS = {"cold": None, "warm": WarmOptions(("tiny",))}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return write_programs(tmp_path)


def write_programs(tmp_path: Path) -> Path:
    """Write programs, modules and an image below a folder; return that of the programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, program in {"sees": SEES, "waits": WAITS, **ENDS}.items():
        (folder / f"{name}_program.py").write_text(program)
    image = tmp_path / "images" / "tiny"
    image.mkdir(parents=True)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "imported.py").touch()
    text = f"""
name = "tiny"
warm_modules = ["colorsys", "multiprocessing", "imported"]
warm_variables = ["COLORSYS_"]
entrypoint = ["python", "-m"]
[environment]
PYTHONUNBUFFERED = "1"
PYTHONPATH = "{tmp_path / "modules"}"
"""
    (image / "image.toml").write_text(text)
    return folder


def make_runtime(tmp_path: Path, name: str, warm: WarmOptions | None) -> LocalProcesses:
    return LocalProcesses(tmp_path / name, ImageCatalogue(tmp_path / "images"), warm=warm)


@pytest.fixture
def cold(tmp_path: Path, programs: Path) -> Iterator[LocalProcesses]:
    runtime = make_runtime(tmp_path, "cold", None)
    yield runtime
    remove_all(runtime)


@pytest.fixture
def warm(tmp_path: Path, programs: Path) -> Iterator[LocalProcesses]:
    runtime = make_runtime(tmp_path, "warm", WarmOptions(("tiny",)))
    wait_until_ready(runtime)
    yield runtime
    remove_all(runtime)
    runtime.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalProcesses, LocalProcesses, Path]]:
    """A runtime that starts cold, one with a warm interpreter, and programs, which no test changes."""
    folder = tmp_path_factory.mktemp("both")
    programs = write_programs(folder)
    cold, warm = (make_runtime(folder, name, options) for name, options in KINDS.items())
    wait_until_ready(warm)
    yield cold, warm, programs
    warm.close()


def remove_all(runtime: LocalProcesses) -> None:
    for container in runtime.find({}):
        runtime.remove(container.id)


def find_interpreter(runtime: LocalProcesses) -> WarmInterpreter:
    return runtime._warm._interpreters["tiny"]


def wait_until_ready(runtime: LocalProcesses) -> None:
    interpreter = find_interpreter(runtime)
    wait_until(lambda: interpreter.is_ready, lambda: interpreter.has_ended and interpreter.describe_end())


def build_spec(programs: Path, program: str, **environment: str) -> ContainerSpec:
    modules = programs.parent / "modules"
    variables = {"PYTHONPATH": f"{modules}:{PROGRAMS}", **environment}
    # The container has a /tmp of its own.
    mounts = (Mount(programs, PROGRAMS), Mount(modules, str(modules)))
    command = (f"{program}_program", "a", "b")
    return ContainerSpec("tiny", "tiny", command, environment=variables, mounts=mounts, niceness=3)


def run(runtime: LocalProcesses, spec: ContainerSpec) -> tuple[list[str], int]:
    container = runtime.start(spec)
    lines = [re.sub(r"smdebug-emulator-\w+|0x[0-9a-f]+", "SCRATCH", line.text) for line in runtime.logs(container)]
    ended = runtime.wait(container)
    assert ended is not None
    runtime.remove(container)
    return lines, ended.code


@pytest.fixture
def ignored_signals() -> Iterator[None]:
    """What a shell ignores in what it starts in the background."""
    numbers = (signal.SIGINT, signal.SIGQUIT)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("ignored_signals")
def test_a_fork_sees_what_a_new_interpreter_sees(cold: LocalProcesses, warm: LocalProcesses, programs: Path) -> None:
    spec = build_spec(programs, "sees", GIVEN="value")
    (was_warm, state), code = run(warm, spec)
    assert was_warm == "True"
    (was_warm, other), cold_code = run(cold, spec)
    assert was_warm == "False"
    forked, started = json.loads(state), json.loads(other)
    # A cold container inherits what whoever started these tests has left open.
    inherited = {each.name for each in Path("/proc/self/fd").iterdir() if is_inheritable(int(each.name))} - set("012")
    started["descriptors"] = [each for each in started["descriptors"] if each not in inherited]
    assert {name: (forked[name], started[name]) for name in forked if forked[name] != started[name]} == {}
    assert code == cold_code


@pytest.mark.slow
@pytest.mark.parametrize("program", ENDS)
def test_a_fork_ends_as_a_new_interpreter_does(both: tuple[LocalProcesses, LocalProcesses, Path], program: str) -> None:
    cold, warm, programs = both
    spec = build_spec(programs, program)
    forked = run(warm, spec)
    assert not any("smdebug-emulator:" in line or "No module named" in line for line in forked[0])
    assert forked == run(cold, spec)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"COLORSYS_DIGITS": "3"}, "its environment sets COLORSYS_DIGITS, which is read when modules are imported"),
        ({"PYTHONHASHSEED": "3"}, "its environment sets PYTHONHASHSEED, which is read when modules are imported"),
    ],
)
def test_a_variable_read_by_an_import_starts_cold(
    both: tuple[LocalProcesses, LocalProcesses, Path], variables: dict[str, str], reason: str
) -> None:
    _, warm, programs = both
    (line, was_warm, _), code = run(warm, build_spec(programs, "sees", **variables))
    assert (line, was_warm, code) == (f"smdebug-emulator: started without a warm interpreter: {reason}", "False", 0)


def test_a_module_that_python_imports_when_it_starts_starts_cold(warm: LocalProcesses, programs: Path) -> None:
    (programs / "sitecustomize.py").touch()
    (line, was_warm, _), code = run(warm, build_spec(programs, "sees"))
    assert line.endswith(f"{PROGRAMS} has a module sitecustomize, which Python imports when it starts")
    assert (was_warm, code) == ("False", 0)


def test_another_module_of_an_imported_name_starts_cold(warm: LocalProcesses, programs: Path) -> None:
    (programs / "colorsys.py").touch()
    (line, was_warm, _), code = run(warm, build_spec(programs, "sees"))
    assert line.endswith(f"{PROGRAMS} has a module colorsys, which is imported already")
    assert (was_warm, code) == ("False", 0)


def test_an_interpreter_that_was_killed_is_replaced(warm: LocalProcesses, programs: Path) -> None:
    killed = find_interpreter(warm)
    killed.process.kill()
    killed.process.wait()
    assert run(warm, build_spec(programs, "sees"))[0][0] == "True"
    assert find_interpreter(warm) is not killed


def test_an_interpreter_that_the_kernel_kills_for_want_of_memory_is_replaced(tmp_path: Path, programs: Path) -> None:
    text = "import signal\nkept = []\nsignal.signal(signal.SIGUSR1, lambda *_: kept.append(b'x' * (96 << 20)))\n"
    (programs.parent / "modules" / "imported.py").write_text(text)
    runtime = make_runtime(tmp_path, "bounded", WarmOptions(("tiny",)))
    wait_until_ready(runtime)
    with hold_memory_group(32 << 20) as group:
        if group is None:
            pytest.skip("a control group needs root")
        killed = find_interpreter(runtime)
        group.add(killed.process.pid)
        killed.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: killed.has_ended)
        assert (killed.was_killed, group.count_kills()) == (True, 1)
    # As the first container of an image, it waits for imports instead of doing them itself.
    lines, code = run(runtime, build_spec(programs, "sees"))
    assert (lines[0], code) == ("True", 0)
    assert find_interpreter(runtime) is not killed
    runtime.close()


def test_the_first_containers_wait_for_the_imports_of_one_interpreter(tmp_path: Path, programs: Path) -> None:
    (programs.parent / "modules" / "imported.py").write_text("import time\ntime.sleep(0.5)\n")
    runtime = make_runtime(tmp_path, "first", WarmOptions())
    with ThreadPoolExecutor() as pool:
        specs = [replace(build_spec(programs, "sees"), name=f"tiny-{number}") for number in range(3)]
        for lines, code in pool.map(partial(run, runtime), specs):
            assert (lines[0], code) == ("True", 0)
    assert len(list((tmp_path / "first-warm").iterdir())) == 1
    runtime.close()


def test_a_container_does_not_wait_for_imports_that_it_cannot_use(tmp_path: Path, programs: Path) -> None:
    (programs.parent / "modules" / "imported.py").write_text("import time\ntime.sleep(600)\n")
    runtime = make_runtime(tmp_path, "other", WarmOptions(("tiny",)))
    lines, code = run(runtime, build_spec(programs, "sees", COLORSYS_CONTEXT="1"))
    assert ("COLORSYS_CONTEXT" in lines[0], lines[1], code) == (True, "False", 0)
    runtime.close()


def test_a_back_end_that_is_closed_starts_what_waits(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (programs.parent / "modules" / "imported.py").write_text("import time\ntime.sleep(600)\n")
    runtime = make_runtime(tmp_path, "closed", WarmOptions(("tiny",)))
    waits, wait = Event(), WarmInterpreter.wait

    def note_wait(interpreter: WarmInterpreter, seconds: float) -> None:
        waits.set()
        wait(interpreter, seconds)

    monkeypatch.setattr(WarmInterpreter, "wait", note_wait)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(run, runtime, build_spec(programs, "sees"))
        try:
            assert waits.wait(60)
        finally:
            runtime.close()
        lines, code = waiting.result()
        assert (lines[0], code) == ("False", 0)


@pytest.mark.slow
def test_an_interpreter_whose_files_changed_is_replaced(warm: LocalProcesses, programs: Path) -> None:
    os.utime(programs.parent / "modules" / "imported.py", (1, 1))
    changed = find_interpreter(warm)
    lines, code = run(warm, build_spec(programs, "sees"))
    assert (lines[0], lines[1], code) == (
        "smdebug-emulator: started without a warm interpreter: it had ended, or its files have changed",
        "False",
        0,
    )
    assert find_interpreter(warm) is not changed


def test_an_interpreter_that_has_grown_is_replaced(tmp_path: Path, programs: Path) -> None:
    text = "import signal\nkept = []\nsignal.signal(signal.SIGUSR1, lambda *_: kept.append(b'x' * (96 << 20)))\n"
    (programs.parent / "modules" / "imported.py").write_text(text)
    runtime = make_runtime(tmp_path, "grown", WarmOptions(("tiny",)))
    wait_until_ready(runtime)
    grown = find_interpreter(runtime)
    grown.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: psutil.Process(grown.process.pid).memory_info().rss > 96 << 20)
    (line, was_warm, _), code = run(runtime, build_spec(programs, "sees"))
    assert line.startswith("smdebug-emulator: started without a warm interpreter: ")
    assert (was_warm, code) == ("False", 0)
    assert find_interpreter(runtime) is not grown
    runtime.close()


def test_imports_that_start_threads_are_not_forked(tmp_path: Path, programs: Path) -> None:
    text = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True, name='busy').start()\n"
    )
    (programs.parent / "modules" / "imported.py").write_text(text)
    runtime = make_runtime(tmp_path, "threads", WarmOptions(("tiny",)))
    (line, was_warm, _), code = run(runtime, build_spec(programs, "sees"))
    assert line.endswith("no warm interpreter can be made: its imports have started threads, busy")
    assert (was_warm, code) == ("False", 0)
    runtime.close()


def test_an_idle_interpreter_ends(tmp_path: Path, programs: Path) -> None:
    runtime = make_runtime(tmp_path, "idle", WarmOptions(idle_seconds=0.5))
    run(runtime, build_spec(programs, "sees"))
    interpreter = find_interpreter(runtime)
    wait_until(lambda: interpreter.has_ended)
    runtime.close()


@pytest.mark.parametrize(("ahead", "idle"), [((), 600), (("tiny",), None)])
def test_an_interpreter_may_be_idle_for_ten_minutes_unless_it_is_asked_for(
    tmp_path: Path, programs: Path, ahead: tuple[str, ...], idle: float | None
) -> None:
    runtime = make_runtime(tmp_path, "asked", WarmOptions(ahead))
    run(runtime, build_spec(programs, "sees"))
    told = json.loads(psutil.Process(find_interpreter(runtime).process.pid).cmdline()[2])
    assert told["idle_seconds"] == idle
    runtime.close()


def test_an_interpreter_that_cannot_import_is_not_tried_again(tmp_path: Path, programs: Path) -> None:
    (programs.parent / "modules" / "imported.py").write_text("raise ValueError('broken')")
    runtime = make_runtime(tmp_path, "broken", WarmOptions(("tiny",)))
    interpreter = find_interpreter(runtime)
    wait_until(lambda: interpreter.has_ended)
    for _ in range(2):
        lines, code = run(runtime, build_spec(programs, "sees"))
        assert ("ValueError: broken" in lines[0], lines[1], code) == (True, "False", 0)
    runtime.close()


def test_a_kill_of_supervisor_and_guardian_leaves_nothing(warm: LocalProcesses, programs: Path) -> None:
    container = warm.start(build_spec(programs, "waits"))
    assert next(warm.logs(container)).text == "waits"
    guardian = read_supervisor_pid(warm._folder / container)
    assert guardian is not None
    tree = psutil.Process(guardian).children(recursive=True)
    assert len(tree) == 3
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, neither sees the other's end
        for pid in (guardian, tree[0].pid):
            os.kill(pid, number)
    ended = warm.wait(container)
    assert ended is not None
    assert ended.code == 128 + signal.SIGKILL
    wait_until(lambda: not any(is_alive(each) for each in tree))


def test_a_kill_of_the_back_end_ends_the_interpreter_but_no_container(tmp_path: Path, programs: Path) -> None:
    spec = build_spec(programs, "waits")
    code = f"""
import pathlib, time
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.warm import warm_interpreter
from pathlib import PosixPath
folder = pathlib.Path({str(tmp_path)!r})
runtime = LocalProcesses(folder / "killed", ImageCatalogue(folder / "images"), warm=WarmOptions(("tiny",)))
interpreter = runtime._warm._interpreters["tiny"]
while not interpreter.is_ready:
    time.sleep(0.01)
runtime.start({spec!r})
print(interpreter.process.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        interpreter = psutil.Process(int(emulator.stdout.readline()))
        emulator.kill()
    wait_until(lambda: not is_alive(interpreter))
    runtime = make_runtime(tmp_path, "killed", None)
    (container,) = runtime.find({})
    assert container.running
    runtime.stop(container.id, 5)
    ended = runtime.wait(container.id)
    assert ended is not None
    assert ended.code == 128 + signal.SIGTERM
    remove_all(runtime)


def is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False  # that of the listed folder itself


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_imports_that_were_killed_once_are_tried_again(tmp_path: Path, programs: Path) -> None:
    marker = tmp_path / "killed"
    # As the kernel kills it where memory is short.
    text = f"import os, pathlib\nif not os.path.exists({str(marker)!r}):\n    pathlib.Path({str(marker)!r}).touch()\n"
    text += "    os.kill(os.getpid(), 9)\n"
    (programs.parent / "modules" / "imported.py").write_text(text)
    runtime = make_runtime(tmp_path, "killed_once", WarmOptions(()))
    (line, was_warm, _), code = run(runtime, build_spec(programs, "sees"))
    assert line.endswith("no warm interpreter can be made: it was killed during its imports")
    assert (was_warm, code) == ("False", 0)
    assert run(runtime, build_spec(programs, "sees"))[0][0] == "True"
    runtime.close()


def test_an_interpreter_killed_while_it_is_asked_costs_no_container(warm: LocalProcesses, programs: Path) -> None:
    process = psutil.Process(find_interpreter(warm).process.pid)
    process.suspend()
    with ThreadPoolExecutor() as pool:
        started = pool.submit(run, warm, build_spec(programs, "sees"))
        # The request is in its socket, which it does not read, or is about to be sent.
        wait_until(lambda: list((programs.parent / "warm").glob("[!.]*/process.json")))
        process.kill()
        lines, code = started.result()
    assert (lines[-2] in ("True", "False"), code) == (True, 0)


def test_pages_that_only_imports_needed_are_given_back() -> None:
    program = f"""
import sys
sys.path.insert(0, {str(Path(warm_interpreter.__file__).parent)!r})
import numpy, interpreter_start

def count_pages_of_files():
    return int(open("/proc/self/statm").read().split()[2])

before = count_pages_of_files()
interpreter_start.drop_clean_pages()
print(count_pages_of_files() < before / 2, numpy.linalg.inv(numpy.eye(3) * 2)[0, 0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True 0.5\n", "")
