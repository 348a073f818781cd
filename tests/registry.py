"""Container registry for tests: Debian's package, unpacked but not installed.

Its files are in one folder.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from container_runtime.file_lock import hold_lock
from tests.waiting import wait_until

_UNPACKED = Path(__file__).parents[1] / ".cache" / "docker-registry"
_CONFIGURATION = """
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {files}}}}}
http: {{addr: "{address}:{port}"}}
"""


_LOGIN = """
auth: {{htpasswd: {{realm: tests, path: {passwords}}}}}
"""
USER, PASSWORD = "user", "secret"
# Of the password, by bcrypt.
_HASH = "$2b$04$QPR/qVS6AP/meZWRxBpx5.SrMQFELan6H314Xuqc4gJ5ZDVpWY9de"


def _fetch() -> Path:
    """Return the program, fetched when it is first asked for."""
    program = _UNPACKED / "usr" / "bin" / "docker-registry"
    _UNPACKED.parent.mkdir(exist_ok=True)
    with hold_lock(_UNPACKED.with_suffix(".lock")):
        if not program.exists():
            fetched = _UNPACKED.with_suffix(".fetched")
            shutil.rmtree(fetched, ignore_errors=True)
            fetched.mkdir()
            done = subprocess.run(["apt-get", "download", "docker-registry"], cwd=fetched, check=False)
            if done.returncode:  # no lists of packages yet
                subprocess.run(["apt-get", "update", "-qq"], check=True)
                subprocess.run(["apt-get", "download", "docker-registry"], cwd=fetched, check=True)
            (package,) = fetched.glob("*.deb")
            subprocess.run(["dpkg-deb", "--extract", package, _UNPACKED], check=True)
            shutil.rmtree(fetched)
    return program


@contextmanager
def run_registry(address: str, port: int, folder: Path, *, with_login: bool = False) -> Iterator[str]:
    """Serve at an address of this machine, to anybody or to ``USER``; yield what the names of its images begin with."""
    program, configuration = _fetch(), folder / "registry.yml"
    text = _CONFIGURATION.format(files=folder / "registry", address=address, port=port)
    if with_login:
        passwords = folder / "passwords"
        passwords.write_text(f"{USER}:{_HASH}\n")
        text += _LOGIN.format(passwords=passwords)
    configuration.write_text(text)
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", configuration], stdout=log, stderr=log)
        try:
            wait_until(lambda: process.poll() is not None or _answers(address, port))
            assert process.poll() is None, (folder / "registry.log").read_text()
            yield f"{address}:{port}"
        finally:
            process.terminate()
            process.wait()


def _answers(address: str, port: int) -> bool:
    # 401 is an answer.
    done = subprocess.run(["curl", "--silent", f"http://{address}:{port}/v2/"], check=False, timeout=10)
    return done.returncode == 0
