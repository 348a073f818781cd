"""Program of a warm interpreter, which imports modules and forks processes.

The process back end runs this file with the interpreter of an image's environment. The second argument is the file
descriptor of a socket to the back end. Each request on it is the folder of a container, with two file descriptors: the
container's lock file, and the pipe that reports the result of the start. For each request this process forks the
container's supervisor, and the supervisor forks the container's process. That process continues as if its interpreter
had just been started with the container's command: see ``docs/decisions/0086-warm-interpreters.md``. Spare containers
of the Docker back end use the same definitions (``spare_program.py``).

The back end's end of the socket closes when the emulator ends in any way. This program then ends, too.
"""

# The program runs with the oldest Python of any image.
# ruff: noqa: PTH109, PTH112, PTH113, PTH116, PTH118, PTH120, PTH123, PTH208, BLE001, SIM105

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import types
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPTS_MODULE = "smdebug_emulator_scripts"
SPACE_VARIABLE = "SMDEBUG_EMULATOR_SPACE"
# Growth of this process after its imports at which the back end replaces it.
MAX_GROWTH_BYTES = 64 * 1024**2
# Variables that the interpreter or the C library reads only once. PYTHONPATH is compared by the modules found there.
_READ_ONCE = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "TZ")
_NOT_READ_ONCE = "PYTHONPATH"
# What an interpreter imports when it starts, if there are such modules.
_AT_START = ("sitecustomize", "usercustomize")


class ProcessForkedError(BaseException):
    """Raised in a forked container process: unwinds the stack to the program's first frame, which runs the command."""

    def __init__(self, argv: list[str], environment: dict[str, str]) -> None:
        super().__init__()
        self.argv = argv
        self.environment = environment


def find_changed_variable(
    asked: Mapping[str, str], warm: Mapping[str, str], prefixes: tuple[str, ...] | list[str]
) -> str | None:
    """Return a variable that libraries read when they are imported and that has another value in ``asked``."""
    watched = (*_READ_ONCE, *prefixes)
    for name in sorted({*asked, *warm}):
        if name.startswith(watched) and name != _NOT_READ_ONCE and asked.get(name) != warm.get(name):
            return name
    return None


class WarmInterpreter:
    """The interpreter after its imports, and what a process forked from it needs.

    Attributes:
        variables: its variables.
        prefixes: beginnings of the names of variables that the imported modules read when they are imported.
        hook: module whose ``main`` a forked process calls before its program, or an empty string.
        script_starters: modules whose program starts a script, which is forked, too.
        main: the module ``main_module``, which runs programs.
    """

    def __init__(self, request: dict[str, Any], *controls: int) -> None:
        """Import the modules of a request. ``controls`` are file descriptors that no program gets."""
        self._start = load_module("interpreter_start")
        self._end = load_module("interpreter_end")
        self.main = load_module("main_module")
        self._start.reset_signals()
        given = self._start.read_given_names()
        self.variables = {name: os.environ[name] for name in os.environ if name in given and name != SPACE_VARIABLE}
        # Python sets LC_CTYPE where the C library has no locale of the given name.
        self._set_by_python = {name: value for name, value in os.environ.items() if name not in given}
        self.prefixes: list[str] = list(request["variables"])
        self.hook = str(request["hook"])
        self.script_starters: list[str] = list(request["script_starters"])
        # Without the folder of this file.
        del sys.path[0]
        self._path = list(sys.path)
        before = dict(os.environ)
        # Nearly all objects of the imports stay. To look for garbage among them takes a sixth of their time. What there
        # is stays, too: with PyTorch, to collect it takes 0.4 s and gives no memory back to the system.
        thresholds = gc.get_threshold()
        gc.set_threshold(0, *thresholds[1:])
        self._printed = self._start.import_modules(request["modules"])
        self._set_by_imports = {name: value for name, value in os.environ.items() if before.get(name) != value}
        self._imported = set(sys.modules)
        self._modules = {name.partition(".")[0] for name in sys.modules} - {*sys.builtin_module_names, "__main__"}
        self._files = {path: read_mtime(path) for path in list_files()}
        self._descriptors = {int(name) for name in os.listdir("/proc/self/fd")} - {*controls}
        self._signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
        gc.freeze()
        if not gc.get_threshold()[0]:  # no module has set it
            gc.set_threshold(*thresholds)
        self._libraries = self._end.read_libraries()
        self._start.drop_clean_pages()
        self._own_bytes = read_own_bytes()

    def find_change(self) -> str | None:
        """Return why this process must be replaced, or None."""
        changed = next((path for path, mtime in self._files.items() if read_mtime(path) != mtime), None)
        if changed is not None:
            return f"{changed} has changed"
        if read_own_bytes() > self._own_bytes + MAX_GROWTH_BYTES:
            return f"it has grown by more than {MAX_GROWTH_BYTES >> 20} MiB"
        return None

    def become(self, argv: list[str], environment: dict[str, str]) -> None:
        """Prepare this forked process as ``os.execve`` would, and unwind.

        Raises:
            ProcessForkedError: always.
        """
        signal.set_wakeup_fd(-1)
        self.close_descriptors()
        for name in set(sys.modules) - self._imported:
            del sys.modules[name]  # what the supervisor has imported
        for number, handler in self._signals.items():
            if handler is not None and number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, handler)
        raise ProcessForkedError(argv, environment)

    def close_descriptors(self, *kept: int) -> None:
        """Close every file descriptor that a new interpreter with the same imports would not have."""
        for name in os.listdir("/proc/self/fd"):
            number = int(name)
            if number > 2 and number not in self._descriptors and number not in kept:
                try:
                    os.close(number)
                except OSError:
                    pass  # the descriptor of the listed folder itself

    def end(self, code: int) -> None:
        """End this forked process as Python does; see ``interpreter_end.end_process``."""
        self._end.end_process(code, self._imported, self._libraries)

    def begin(self, environment: dict[str, str], script_folder: str | None) -> None:
        """Give this process the environment and the import path of a new interpreter."""
        self._start.replace_environment(environment)
        os.environ.update(self._set_by_python)
        given = [entry or os.getcwd() for entry in find_python_path(environment)]
        # Python removes duplicates before it adds the script's folder.
        sys.path[:] = dict.fromkeys([*given, *self._path])
        if script_folder is not None:
            sys.path.insert(0, script_folder)
        sys.path_importer_cache.clear()
        home = self.variables["HOME"]
        if os.path.isdir(home) and os.listdir(home) and environment["HOME"] != home:
            # What the imports wrote there, a new interpreter would have written into the container's home.
            shutil.copytree(home, environment["HOME"], dirs_exist_ok=True)
        self._start.renew_standard_library()
        sys.modules["__main__"] = types.ModuleType("__main__")

    def prepare_use(self) -> None:
        """Prepare this process for a program that uses the imported modules."""
        os.write(2, self._printed)
        # Some name a folder below this process's own.
        for name, value in self._set_by_imports.items():
            for folder in ("TMPDIR", "HOME"):
                if folder in self.variables:
                    value = value.replace(self.variables[folder], os.environ[folder])
            os.environ.setdefault(name, value)
        if self.hook:
            importlib.import_module(self.hook).main()

    def find_obstacle(self, argv: list[str], environment: dict[str, str], folder: str) -> str | None:
        """Return why a script cannot be a fork of this interpreter, or None."""
        script = find_script(argv)
        if script is None or not os.path.isfile(os.path.join(folder, script)):
            return "it is not started as `python SCRIPT`"
        changed = find_changed_variable(environment, self.variables, self.prefixes)
        if changed is not None:
            return f"its environment sets {changed}"
        return self.find_hidden([os.path.dirname(os.path.join(folder, script)), *find_python_path(environment)])

    def find_hidden(self, path: list[str]) -> str | None:
        """Return that a folder of an import path has a module that a new interpreter would have imported, or None."""
        for entry in path:
            found = set() if entry in self._path else set(list_modules(entry))
            if hidden := self._modules & found:
                return f"{entry} has a module {min(hidden)}, which is imported already"
            if at_start := found.intersection(_AT_START):
                return f"{entry} has a module {min(at_start)}, which Python imports when it starts"
        return None


def load_module(name: str, *folder: str) -> Any:
    """Return a module from the folder of this file. No program finds it among its imported modules."""
    module = types.ModuleType(name)
    module.__file__ = os.path.join(os.path.dirname(__file__), *folder, f"{name}.py")
    SourceFileLoader(name, module.__file__).exec_module(module)
    return module


def find_python_path(environment: dict[str, str]) -> list[str]:
    """Return the entries of PYTHONPATH."""
    text = environment.get("PYTHONPATH", "")
    return text.split(os.pathsep) if text else []


def find_script(argv: list[str]) -> str | None:
    """Return the script that a command runs with this interpreter and no options, or None."""
    rest = argv[1:]
    if rest[:1] == ["--"]:
        rest = rest[1:]
    elif not rest or rest[0].startswith("-"):
        return None
    return rest[0] if argv[0] == sys.executable and rest and rest[0].endswith(".py") else None


def list_modules(folder: str) -> list[str]:
    """Return the names under which the files and packages of a folder can be imported."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        name.partition(".")[0]
        for name in names
        if name.endswith((".py", ".pyc", ".so")) or os.path.isfile(os.path.join(folder, name, "__init__.py"))
    ]


def list_files() -> list[str]:
    """Return the files of all imported modules."""
    found = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [path for path in found if isinstance(path, str)]


def read_mtime(path: str) -> int | None:
    """Return the time at which a file was last changed; None if it is missing."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def read_own_bytes() -> int:
    """Return the resident memory of this process without pages of files."""
    with open("/proc/self/statm", "rb") as statm:
        resident, of_files = map(int, statm.read().split()[1:3])
    return (resident - of_files) * os.sysconf("SC_PAGESIZE")


class Scripts:
    """Starts the scripts of a forked program, as forks of the same interpreter.

    It is the module ``smdebug_emulator_scripts`` of the program's process.
    """

    def __init__(self, warm: WarmInterpreter) -> None:
        """Fork the script's process, which waits for its command; in that process, ``run_program`` never returns."""
        self._warm = warm
        read, write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(write)
            with open(read, "rb") as pipe:
                request = pipe.read()
            if not request:
                os._exit(0)
            raise ScriptForkedError(**json.loads(request))
        os.close(read)
        self._write: int | None = write

    def start(self, argv: list[str], environment: dict[str, str], folder: str) -> tuple[int | None, str]:
        """Start a script.

        Returns:
            The pid of the script's process, or None and why it has to be started in a new interpreter.
        """
        write, self._write = self._write, None
        if write is None:
            return None, "it is not the first script"
        try:
            obstacle = self._warm.find_obstacle(argv, environment, folder)
            if obstacle is None:
                with open(write, "wb", closefd=False) as pipe:
                    pipe.write(json.dumps({"argv": argv, "environment": environment, "folder": folder}).encode())
                return self._pid, ""
        except BrokenPipeError:
            obstacle = "the process that waited for it has ended"
        finally:
            os.close(write)
        os.waitpid(self._pid, 0)
        return None, obstacle

    def train_here(self) -> None:
        """Prepare the program's own process for a training, in place of a script's."""
        self._warm.prepare_use()


class ScriptForkedError(BaseException):
    """Raised in a forked script process: unwinds the stack to the frame that runs the script."""

    def __init__(self, argv: list[str], environment: dict[str, str], folder: str) -> None:
        super().__init__()
        self.argv = argv
        self.environment = environment
        self.folder = folder


def serve(warm: WarmInterpreter, supervisor: Any, control: socket.socket) -> None:
    """Fork a supervisor for each request, until the back end's end closes or no request comes for too long."""
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 2)
        except TimeoutError:
            return
        if not message:
            return
        if not descriptors:
            control.settimeout(json.loads(message))  # how long is too long
            continue
        lock, handshake = descriptors
        change = warm.find_change()
        if change is None and os.fork() == 0:
            control.close()
            become_supervisor(warm, supervisor, message.decode(), lock, handshake)
        os.close(lock)
        os.close(handshake)
        if change is not None:
            print(change, flush=True)  # noqa: T201 - the back end reads it
            return


def become_supervisor(warm: WarmInterpreter, supervisor: Any, folder: str, lock: int, handshake: int) -> None:
    """Run a container's supervisor in this forked process, and end with it."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        high_lock, high_handshake = os.dup(lock), os.dup(handshake)
        log = os.open(os.path.join(folder, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(high_lock, supervisor.LOCK_FD, inheritable=False)
        os.dup2(high_handshake, supervisor.HANDSHAKE_FD, inheritable=False)
        warm.close_descriptors(supervisor.LOCK_FD, supervisor.HANDSHAKE_FD)
        supervisor.Supervisor(folder, supervisor.guard(), warm.become).run()
    except ProcessForkedError:
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def run_program(warm: WarmInterpreter, process: ProcessForkedError) -> int:
    """Continue as the container's program, and return its exit code.

    It is ``python [-P] -m MODULE ARGUMENTS``, ``python -c CODE ARGUMENTS`` or ``python FILE ARGUMENTS``.
    """
    argv = process.argv
    sys.orig_argv = list(argv)
    at = 2 if argv[1] == "-P" else 1
    option = argv[at] if argv[at] in ("-m", "-c") else ""
    starts_script = argv[at + 1 if option else at] in warm.script_starters
    if obstacle := warm.find_hidden(find_python_path(process.environment)):
        sys.stdout.write(f"smdebug-emulator: started without a warm interpreter: {obstacle}\n")
        sys.stdout.flush()
        os.execve(argv[0], argv, process.environment)  # noqa: S606 - no shell is wanted
    if starts_script:
        sys.modules[SCRIPTS_MODULE] = Scripts(warm)  # type: ignore[assignment]
    folder = {"-m": os.getcwd(), "-c": ""}.get(option) if option else warm.main.find_folder(argv[at])
    warm.begin(process.environment, None if at == 2 else folder)
    if not starts_script:
        warm.prepare_use()
    sys.argv = [option, *argv[at + 2 :]] if option else argv[at:]
    return int(warm.main.run(option, argv[at + 1] if option else argv[at]))


def run_script(warm: WarmInterpreter, script: ScriptForkedError) -> int:
    """Continue as a script, ``python SCRIPT ARGUMENTS``; return its exit code."""
    os.chdir(script.folder)
    name = find_script(script.argv)
    assert name is not None
    path = os.path.join(script.folder, name)
    sys.orig_argv = list(script.argv)
    sys.argv = script.argv[script.argv.index(name) :]
    warm.begin(script.environment, warm.main.find_folder(path))
    warm.prepare_use()
    return int(warm.main.run("", path))


def main() -> None:
    """Import, then serve, until this process or one forked from it has to end."""
    request = json.loads(sys.argv[1])
    control = socket.socket(fileno=int(sys.argv[2]))
    control.set_inheritable(False)
    supervisor = load_module("supervisor", os.pardir, "process")
    warm = WarmInterpreter(request, control.fileno())
    if others := [each.name for each in threading.enumerate() if each is not threading.main_thread()]:
        sys.exit(f"its imports have started threads, {', '.join(others)}")
    # Forked supervisors are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.send(b"ready")
    control.settimeout(request["idle_seconds"])
    # Programs run after the exception has been handled: their own errors must not refer to it.
    process = script = None
    try:
        serve(warm, supervisor, control)
    except ProcessForkedError as forked:
        process = forked
    if process is None:
        return
    try:
        code = run_program(warm, process)
    except ScriptForkedError as forked_script:
        script = forked_script
    if script is not None:
        code = run_script(warm, script)
    del process, script
    warm.end(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
