"""Tests of a container's surroundings: environment, mounts, folders, servers."""

import http.server
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from container_runtime.back_ends import Traits
from container_runtime.contract.programs import in_container, python, run, write_wheel
from container_runtime.runtime import ContainerRuntime, Exit
from container_runtime.spec import Mount


def test_environment_is_its_own(runtime: ContainerRuntime, traits: Traits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the host")
    monkeypatch.setenv("SMDEBUG_TEST_LEAK", "of the host")
    source = "import json, os; print(json.dumps(dict(os.environ)))"
    _, lines = run(runtime, python(source, environment={"GIVEN": "a=b c", "LANG": "C"}))
    environment = json.loads(lines[0])
    assert "of the host" not in environment.values()
    assert environment["GIVEN"] == "a=b c"
    assert environment["LANG"] == "C"
    assert environment["PYTHONUNBUFFERED"] == "1"  # the image's own
    assert environment.get("HOME") != os.environ["HOME"] or traits.has_images


def test_home_and_temporary_folder_can_be_written(runtime: ContainerRuntime) -> None:
    source = """
import pathlib, tempfile
(pathlib.Path.home() / "file").write_text("x")
tempfile.NamedTemporaryFile().close()
print("written")
"""
    assert run(runtime, python(source)) == (Exit(0), ["written"])


def test_standard_input_is_empty(runtime: ContainerRuntime) -> None:
    assert run(runtime, python("import sys; print(repr(sys.stdin.read()))"))[1] == ["''"]


def test_mount_is_read_and_written_by_both_sides(runtime: ContainerRuntime, traits: Traits, shared: Mount) -> None:
    (shared.source / "in").write_text("from the test")
    (shared.source / "sub").mkdir()
    source = f"""
import pathlib
text = pathlib.Path({in_container(runtime, shared, "in")}).read_text()
pathlib.Path({in_container(runtime, shared, "sub/out")}).write_text(text.upper())
"""
    assert run(runtime, python(source, mounts=(shared,)))[0] == Exit(0)
    out = shared.source / "sub" / "out"
    assert out.read_text() == "FROM THE TEST"
    # No container is root's: where that is who starts it, it gets a user of its own, and its folders.
    own = (1000, 1000) if traits.has_images and os.getuid() == 0 else (os.getuid(), os.getgid())
    assert (out.stat().st_uid, out.stat().st_gid) == own


def test_base_folder_of_the_toolkit_is_the_mount(runtime: ContainerRuntime, shared: Mount) -> None:
    (shared.source / "in").write_text("found")
    source = "import os; print(open(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml') + '/in').read())"
    assert run(runtime, python(source, mounts=(shared,)))[1] == ["found"]


def test_mounts_are_found_at_their_targets(
    runtime: ContainerRuntime, traits: Traits, shared: Mount, tmp_path: Path
) -> None:
    if traits.may_refuse_isolation and runtime.path_in_container(shared, "in") != "/opt/ml/in":
        pytest.skip("the kernel grants no namespaces")
    other = Mount(tmp_path / "other", "/opt/ml/other/deep", read_only=True)
    elsewhere = Mount(tmp_path / "elsewhere", "/new-in-root/data")
    for mount in (other, elsewhere):
        mount.source.mkdir()
        (mount.source / "in").write_text(mount.target)
    private = f"/tmp/{uuid4()}"
    source = f"""
import json, os, pathlib, tempfile
pathlib.Path("/opt/ml/out").write_text(pathlib.Path("/opt/ml/other/deep/in").read_text())
pathlib.Path("/new-in-root/data/out").write_text(pathlib.Path("/new-in-root/data/in").read_text())
try:
    pathlib.Path("/opt/ml/other/deep/out").touch()
except OSError as error:
    print(error.strerror)
print(os.path.exists({str(tmp_path)!r}), "SAGEMAKER_BASE_DIR" in os.environ)
pathlib.Path({private!r}).touch()
with tempfile.NamedTemporaryFile() as file:
    print(os.path.basename(file.name) in os.listdir("/tmp"))
print(json.dumps(os.listdir("/opt")))
"""
    ended, lines = run(runtime, python(source, mounts=(elsewhere, other, shared)))
    assert (ended, lines[:-1]) == (Exit(0), ["Read-only file system", "False False", "True"])
    assert (shared.source / "out").read_text() == other.target
    assert (elsewhere.source / "out").read_text() == elsewhere.target
    assert not Path(private).exists()
    assert not Path("/new-in-root").exists()
    if not traits.has_images:
        assert set(json.loads(lines[-1])) == {path.name for path in Path("/opt").iterdir()} | {"ml"}


def test_a_local_process_stands_back_as_far_as_it_is_to(runtime: ContainerRuntime, traits: Traits) -> None:
    """Behind other processes, and its session behind other sessions where the kernel groups them."""
    source = "import os; print(os.nice(0)); print(open('/proc/self/autogroup').read().split()[-1])"
    if not Path("/proc/self/autogroup").exists():
        source = "import os; print(os.nice(0), 5, sep='\\n')"
    (_, plain), (ended, lower) = (run(runtime, python(source, niceness=niceness)) for niceness in (0, 5))
    assert ended == Exit(0)
    if traits.has_images:
        assert lower == plain
    else:
        assert int(lower[0]) == min(19, int(plain[0]) + 5)
        # An ordinary user may be refused, who has told another session its niceness in the same tenth of a second.
        assert lower[1] == "5" or os.geteuid() != 0


def test_a_container_has_folders_and_packages_of_its_own(
    runtime: ContainerRuntime, traits: Traits, shared: Mount, tmp_path: Path
) -> None:
    """Its /tmp, home and what pip installs are in its scratch folder, and whoever started it can read them."""
    write_wheel(shared.source, "of_the_job_alone", "LIMIT = 1.5\n")
    write_wheel(shared.source, "jmespath", "__version__ = 'mine'\n")
    source = f"""
import os, pathlib, subprocess, sys, tempfile
wheels = [str(path) for path in pathlib.Path({in_container(runtime, shared, "")}).glob("*.whl")]
command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "boto3", *wheels]
done = subprocess.run(command, capture_output=True, text=True)
if done.returncode:
    print(done.stdout + done.stderr)
found = "import jmespath, of_the_job_alone as own; print(jmespath.__version__, own.LIMIT)"
subprocess.run([sys.executable, "-c", found])
for folder in (tempfile.gettempdir(), os.path.expanduser("~")):
    path = pathlib.Path(folder, "private")
    path.touch(mode=0o600)
    path.write_text("mine")
print(os.access("/usr", os.W_OK), os.statvfs("/").f_flag & os.ST_RDONLY, os.path.exists("/var/tmp/private"))
"""
    scratch = tmp_path / "scratch"
    ended, lines = run(runtime, python(source, mounts=(shared,), scratch=scratch, read_only_root=True))
    assert ended == Exit(0)
    assert lines[0] == "mine 1.5"
    if traits.has_images:
        assert lines[1:] == ["False 1 True"]
    if runtime.path_in_container(shared, "") == "/opt/ml" and traits.returns_scratch:
        assert {(scratch / name / "private").read_text() for name in ("tmp", "home")} == {"mine"}
        assert list(scratch.glob("own-packages/lib/*/site-packages/of_the_job_alone*"))


def test_server_of_the_host_is_reached(runtime: ContainerRuntime) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    def serve_once(listening: socket.socket) -> None:
        with http.server.HTTPServer(("", 0), Handler, bind_and_activate=False) as entrance:
            entrance.socket.close()
            entrance.socket = listening
            entrance.handle_request()

    def serve_too(listening: socket.socket) -> None:
        # What a container has in the server's place, where it has a network to itself. One that is made ahead may come
        # after the request, and serves nobody until it is removed.
        threading.Thread(target=serve_once, args=(listening,), daemon=True).start()

    with http.server.HTTPServer((runtime.host_address, 0), Handler) as server:
        runtime.offer(server.server_port, serve_too)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{runtime.host_address}:{server.server_port}/"
        source = f"import urllib.request; print(urllib.request.urlopen({url!r}).read().decode())"
        assert run(runtime, python(source))[1] == ["hello"]
        server.shutdown()
