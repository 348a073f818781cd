import subprocess
import sys

import pytest


def run(source: str) -> str:
    """Run code in an interpreter that has imported none of the modules, and return what it prints."""
    given = "from emulator.components.deferred_modules import defer_modules\ndefer_modules()\nimport sys\n"
    done = subprocess.run([sys.executable, "-c", given + source], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_s3_and_iam_start_without_the_modules_which_are_there_when_they_are_needed() -> None:
    assert run(
        "import moto.iam.models, moto.s3.responses, responses\n"
        "print([name for name in sys.modules if name.startswith(('yaml.', 'cryptography.x509.'))])\n"
        "print(responses.yaml.safe_load('a: 1'), moto.iam.models.x509.load_pem_x509_certificate.__name__)\n"
        "import yaml, cryptography.x509\n"
        "print(type(yaml).__name__, type(cryptography.x509).__name__, yaml.YAMLError is responses.yaml.YAMLError)\n"
    ).splitlines() == ["[]", "{'a': 1} load_pem_x509_certificate", "module module True"]


@pytest.mark.nightly  # the test above has other parts of the same list
def test_jobs_and_the_docker_back_end_start_without_the_modules_which_jobs_find_imported() -> None:
    assert run(
        "from emulator.components.deferred_modules import preload_modules\n"
        "import container_runtime.docker.back_end, emulator.events.publisher, emulator.jobs.accounts\n"
        "deferred = ('paramiko', 'regex', 'tenacity')\n"
        "found = lambda: [name for name in deferred if type(sys.modules.get(name)).__name__ == 'module']\n"
        "print(found())\n"
        "preload_modules()\n"
        "print(found(), 'tenacity.stop' in sys.modules, 'regex._main' in sys.modules)\n"
    ).splitlines() == ["[]", "['regex', 'tenacity'] True True"]


@pytest.mark.slow
def test_every_form_of_import_finds_the_module() -> None:
    forms = (
        "from yaml import safe_load",
        "import yaml.constructor",
        "from cryptography.x509.oid import NameOID",
        "import importlib.util; assert importlib.util.find_spec('yaml').origin.endswith('__init__.py')",
        "import importlib, yaml; importlib.reload(importlib.import_module('yaml.error')); yaml.load",
        "import copy, yaml; assert not hasattr(yaml, 'no_such_name')",
    )
    for form in forms:
        assert run(f"{form}\nprint('done')") == "done", form


def test_threads_that_need_a_module_at_once_get_it_whole() -> None:
    source = (
        "import threading, yaml\n"
        "from cryptography import x509\n"
        "sys.setswitchinterval(1e-6)\n"
        "barrier, found = threading.Barrier(8), []\n"
        "def use():\n"
        "    barrier.wait()\n"
        "    found.append((yaml.safe_load('1'), x509.CertificateBuilder, x509.oid.NameOID))\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "[each.start() for each in threads]; [each.join() for each in threads]\n"
        "print(len(found), len(set(found)))"
    )
    assert run(source) == "8 1"


def test_imported_modules_stay_as_they_are() -> None:
    source = (
        "import yaml; yaml.load; before = sys.modules['yaml']; defer_modules(); print(sys.modules['yaml'] is before)"
    )
    assert run(source) == "True"
