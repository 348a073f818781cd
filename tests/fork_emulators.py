"""Program that imports the emulator once and becomes one in each fork.

Its only argument is the number of a socket. A message is the arguments of `python -m emulator` with the environment
and whether the emulator leads a session of its own; with it come descriptors: standard input, output and error, and
a pipe for the exit code. The answer is the process's id.
"""

import gc
import importlib
import json
import os
import pkgutil
import re
import select
import socket
import sys
from typing import Any

import emulator
from container_runtime.warm.main_module import run
from emulator.components.deferred_modules import defer_modules, preload_modules

# What every emulator imports of moto when it starts, and before its first request to S3.
OF_MOTO = ("moto.moto_server.werkzeug_app", "moto.iam.models", "moto.iam.responses", "moto.s3.urls")
OF_EMULATORS = re.compile(r"emulator\.(api|components|events|gateway|jobs|moto_services|operations|quotas|state)\b")
LARGEST_MESSAGE = 1 << 17


def become_emulator(request: dict[str, Any], streams: list[int]) -> None:
    """End this process as `python -m emulator` ends."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), 1024)
    if request["new_session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["", *request["arguments"]]
    sys.exit(run("-m", "emulator"))


def serve(control: socket.socket) -> None:
    """Fork until the other end of the socket is closed."""
    running: dict[int, tuple[int, int]] = {}
    events = select.poll()
    events.register(control, select.POLLIN)
    while True:
        for ready, _ in events.poll():
            if ready in running:
                process, pipe = running.pop(ready)
                events.unregister(ready)
                _, status = os.waitpid(process, 0)
                os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(pipe)
                os.close(ready)
                continue
            message, descriptors, _, _ = socket.recv_fds(control, LARGEST_MESSAGE, 4)
            if not message:
                return
            *streams, pipe = descriptors
            process = os.fork()
            if not process:
                control.detach()
                become_emulator(json.loads(message), streams)
            for stream in streams:
                os.close(stream)
            ended = os.pidfd_open(process)
            running[ended] = process, pipe
            events.register(ended, select.POLLIN)
            control.send(str(process).encode())


def main() -> None:
    """Import what emulators import one by one as they start, then serve."""
    gc.disable()
    defer_modules()
    for name in ("emulator.app", "emulator.cli.service.start_stop", "emulator.lambda_functions.invoke_api"):
        importlib.import_module(name)
    for found in pkgutil.walk_packages(emulator.__path__, "emulator."):
        if OF_EMULATORS.match(found.name):
            importlib.import_module(found.name)
    for name in OF_MOTO:
        importlib.import_module(name)
    preload_modules()
    gc.collect()
    gc.freeze()
    gc.enable()
    serve(socket.socket(fileno=int(sys.argv[1])))


main()
