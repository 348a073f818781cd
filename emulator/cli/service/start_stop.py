"""The ``start`` and ``stop`` commands."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from emulator.cli.running import fail, find_running, read_settings, state_dir_option
from emulator.cli.service.ending import EndRequests, log_end
from emulator.cli.service.init_folder import list_scripts, run_scripts
from emulator.cli.setting_options import list_given, setting_options, write_arguments
from emulator.console import CONSOLE
from emulator.exceptions import StartupError
from emulator.gateway.addresses import is_in_container
from emulator.security.keys import NAME as KEYS_NAME
from emulator.settings import DEFAULT_S3_BUCKET, Settings
from emulator.state.folder import describe_unwritable, make_state_dir, remove_unused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from emulator.app import Emulator
    from emulator.state.replica.bucket import Bucket

logger = logging.getLogger(__name__)

NOT_LINUX = (
    "The emulator runs on Linux. Start it in a container: docker run --publish 127.0.0.1:4580:4580 --env "
    "SMDEBUG_EMULATOR_BEHIND=loopback --security-opt seccomp=unconfined smdebug-emulator/emulator"
)
_STOP_SECONDS = 180.0
# mallopt(3) of glibc: M_ARENA_MAX.
_M_ARENA_MAX = -8
_TURN_SECONDS = 0.0005


@click.command()
@state_dir_option
@setting_options
@click.option(
    "--detach", "-d", is_flag=True, help="Run in the background; the log is emulator.log in the state folder."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Lowest level to log.",
)
@click.option(
    "--init-folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run this folder's scripts (*.py, *.sh, executables) in order, as clients, before the ready line is printed.",
)
@click.option("--until-stdin-ends", is_flag=True, hidden=True)  # as it does when the program that holds it ends
@click.option("--announce-to", type=click.IntRange(0), hidden=True)  # a file descriptor, by the process of --detach
@click.option("--remove", type=click.Path(), hidden=True)  # a folder, when all has ended
def start(
    *,
    state_dir: Path | None,
    detach: bool,
    log_level: str,
    init_folder: Path | None,
    until_stdin_ends: bool,
    announce_to: int | None,
    remove: str | None,
    **options: Any,
) -> None:
    """Start the emulator in the foreground, until Ctrl-C.

    SIGTERM also ends it, and so does SIGHUP unless it is ignored, as under nohup. The emulator then stops all jobs and
    removes all containers.

    It prints one line when it is ready; the log goes to standard error.

    You can also set most options with environment variables: SMDEBUG_EMULATOR_MAX_JOBS=2 is --max-jobs 2, and
    SMDEBUG_EMULATOR_NO_WARM=1 is --no-warm.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for package in ("emulator", "container_runtime"):
        logging.getLogger(package).setLevel(log_level.upper())
    settings = replace(read_settings(state_dir), **list_given(options))
    if sys.platform != "linux":
        fail(NOT_LINUX)
    _warn_of_upstream()
    if detach:
        _start_detached(settings, log_level, init_folder)
    requests = EndRequests()
    requests.stop_on_signals()
    if until_stdin_ends:
        threading.Thread(target=_wait_for_stdin, args=(requests,), name="stdin", daemon=True).start()
    scripts = [] if init_folder is None else list_scripts(init_folder.absolute())
    if announce_to is not None:
        os.set_inheritable(announce_to, False)  # noqa: FBT003 - takes no keyword
    with log_end(detached=announce_to is not None):
        # Before the environment is made one of the emulator's own clients: it may name the user's profile.
        bucket = _open_bucket(settings)
        announce = _print_at_once if announce_to is None else partial(_write_and_close, announce_to)
        _serve(settings, requests, scripts, bucket, announce)
    if remove is not None:
        shutil.rmtree(remove)


def _start_detached(settings: Settings, log_level: str, init_folder: Path | None) -> NoReturn:
    """Start another process that serves, in no terminal's foreground; end as it began."""
    log_path = settings.state_dir / "emulator.log"
    try:
        made = make_state_dir(settings.state_dir)
        log_path.open("a").close()
    except OSError as error:
        fail(describe_unwritable(settings.state_dir, error))
    command = [sys.executable, "-P", "-m", "emulator", "start", "--log-level", log_level]
    command += write_arguments(settings)
    command += [] if init_folder is None else ["--init-folder", str(init_folder.absolute())]
    # Its standard output is the log, too: nobody reads a pipe once this command has ended.
    reading, writing = os.pipe()
    with log_path.open("a") as log, os.fdopen(reading) as announced:
        began = log.tell()
        process = subprocess.Popen(
            [*command, "--announce-to", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        said = announced.read()
    if said:
        first, _, more = said.rstrip().partition("\n")
        click.echo(f"{first} Log: {log_path}" + (f"\n{more}" if more else ""))
        raise SystemExit(0)
    process.wait()
    if text := log_path.read_text()[began:].strip():
        remove_unused(made)
    fail(text or f"The emulator ended at once; its log is {log_path}.")


def _print_at_once(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()


def _write_and_close(descriptor: int, text: str) -> None:
    with os.fdopen(descriptor, "w") as target:
        target.write(text)


def _wait_for_stdin(requests: EndRequests) -> None:
    """Ask for the end when standard input ends; read without Python's lock on it, which would hold up that end."""
    while os.read(0, 1):
        pass
    requests.stop("its standard input ended")


def _warn_of_upstream() -> None:
    """Warn that upstream smdebug is installed here too: each of the two has overwritten files of the other."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("smdebug")
    except PackageNotFoundError:
        return
    click.echo(
        f"Upstream smdebug {found} is installed in this environment too, and both have the same modules. For this "
        "one's: pip uninstall smdebug, then pip install --force-reinstall --no-deps smdebug-emulator.",
        err=True,
    )


def _start_emulator(settings: Settings, ask_restart: Callable[[], None], bucket: Bucket | None) -> Emulator:
    """Start the emulator with garbage collection off, and exempt the objects of the start from later collections.

    Collections of what imports create, which is not garbage, take a quarter of the start's processor time
    (``python -m benchmarks startup`` shows it), and would delay requests later.

    Raises:
        StartupError: see ``Emulator``.
    """
    if gc.get_freeze_count():  # an earlier emulator of this process left garbage
        gc.unfreeze()
        gc.collect()
    gc.disable()
    try:
        from emulator.app import Emulator

        emulator = Emulator(settings, ask_restart, bucket)
        gc.freeze()
        return emulator
    finally:
        gc.enable()


def _bound_heaps() -> None:
    """Let the C library keep two heaps instead of eight for each core: the threads of jobs fragment those they use.

    Of 800 jobs in a row the memory grew by 18 KB a job, and by 7 KB with two (``python -m tests.soak many_jobs``).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl and macOS have no such heaps
        return
    mallopt(_M_ARENA_MAX, 2)


def _open_bucket(settings: Settings) -> Bucket | None:
    """Find the credentials of the other S3, where there is one; end the command where there are none."""
    if settings.s3_endpoint is None:
        if settings.s3_bucket is not None:
            fail(f"--s3-bucket {settings.s3_bucket} needs --s3-endpoint, too: the URL of the S3 that has the bucket.")
        return None
    # Imported here: most emulators have none.
    from emulator.state.replica.bucket import Bucket

    try:
        return Bucket(settings.s3_endpoint, settings.s3_bucket or DEFAULT_S3_BUCKET)
    except StartupError as error:
        fail(str(error))


def _serve(
    settings: Settings,
    requests: EndRequests,
    scripts: Sequence[Path],
    bucket: Bucket | None,
    announce: Callable[[str], None],
) -> None:
    # Nothing here is the user's account: moto would fail where these name a profile or a file that is not there.
    os.environ |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        os.environ.pop(name, None)

    for name in ("NO_PROXY", "no_proxy"):  # its own clients, and the programs that it starts, ask itself
        os.environ[name] = ",".join(filter(None, ["127.0.0.1,localhost", os.environ.get(name)]))

    # A request asks SQLite dozens of times, and each time waits for its turn again behind threads that compute: with
    # Python's own 5 ms clients waited for those turns and not for work.
    sys.setswitchinterval(_TURN_SECONDS)

    _bound_heaps()

    ask_restart = partial(requests.restart, "an archive replaces its state")
    first = restarts = True
    while restarts:
        try:
            emulator = _start_emulator(settings, ask_restart, bucket)
        except StartupError as error:
            fail(str(error))
        with closing(emulator):
            introduction = "\n".join(_introduce(emulator, asked_for_signatures=settings.require_signature))
            if first:
                run_scripts(scripts, emulator.settings, lambda: requests.are_pending)
                announce(introduction)
            else:
                # Whoever read the first line may have closed its pipe. The rest has the console's token.
                logger.info("Started again: %s", introduction.partition("\n")[0])
            first = False
            restarts = requests.wait()
        settings = replace(settings, port=emulator.settings.port)


def _introduce(emulator: Emulator, *, asked_for_signatures: bool) -> Iterator[str]:
    """Say where it is, what it runs, and what clients need."""
    settings, advertised = emulator.settings, emulator.advertised_url
    beyond = f", and {advertised} for other machines" if advertised else ""
    yield f"{settings.endpoint_url} answers{beyond}. {emulator.chosen.reason} State: {settings.state_dir}"
    if settings.keys is not None and settings.require_signature:
        link = f"{advertised or settings.endpoint_url}{CONSOLE}?token={settings.keys.token}"
        why = "" if asked_for_signatures else ", since other machines reach it"
        where = "" if asked_for_signatures else f" Its own key is in {settings.state_dir / KEYS_NAME}."
        yield f"Signatures are required{why}.{where} The console opens at {link}"
        if advertised and is_in_container():
            yield (
                "If the port is published on the host's loopback interface only (docker run -p 127.0.0.1:4580:4580), "
                "SMDEBUG_EMULATOR_BEHIND=loopback serves it without TLS and signatures."
            )
    if settings.ca_bundle is not None:
        shown = "a generated certificate" if settings.tls_certificate is None else str(settings.tls_certificate)
        yield (
            f"It shows {shown}; what clients have to trust is {settings.ca_bundle}, which smdebug-emulator env and "
            "run name to those on this machine, and others need a copy of (AWS_CA_BUNDLE)."
        )


@click.command()
@state_dir_option
def stop(state_dir: Path | None) -> None:
    """Stop the emulator and wait until it has ended."""
    settings = read_settings(state_dir)
    record = find_running(settings)
    if not _end_process(record.pid, _STOP_SECONDS):
        fail(f"The emulator (process {record.pid}) is still stopping its jobs after {_STOP_SECONDS:.0f} s.")
    click.echo(f"Stopped the emulator at {record.endpoint_url}.")


def _end_process(pid: int, timeout: float) -> bool:
    """Send SIGTERM to a process and wait until it has ended; return False if ``timeout`` seconds pass first.

    The lock of the state folder is not enough to wait for: the process releases it before its last lines of log, and
    for a moment while it restarts.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        return bool(ended.poll(timeout * 1000))
    finally:
        os.close(pidfd)
