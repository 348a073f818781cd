"""Starter of awslambdaric under another version of Python than the emulator's.

That Python runs this file and needs no installed packages. The packages that Lambda provides (awslambdaric and boto3)
are imported from the emulator's packages in the folder SMDEBUG_EMULATOR_PACKAGES. The packages of the function and of
the interpreter take precedence. awslambdaric calls the Runtime API with a module that is compiled for one version of
Python. This file replaces that module by Python code.
"""

# The oldest of those versions, 3.9, cannot evaluate the annotations.
from __future__ import annotations

import http.client
import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

_CLIENT = frozenset({"awslambdaric", "simplejson", "snapshot_restore_py"})
_SDK = frozenset({"boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3"})
_DEADLINE = "Lambda-Runtime-Deadline-Ms"
_INVOCATION = "/2018-06-01/runtime/invocation"


class BroughtPackages(importlib.abc.MetaPathFinder):
    """Finds only the given packages in a folder that contains many more."""

    def __init__(self, folder: str, names: frozenset[str]) -> None:
        self._folder = folder
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a top-level package. Its submodules are found by the package's path."""
        if path is None and fullname in self._names:
            return importlib.machinery.PathFinder.find_spec(fullname, [self._folder], target)
        return None


class RuntimeClient(types.ModuleType):
    """A replacement of awslambdaric's compiled module ``runtime_client``."""

    def __init__(self, address: str) -> None:
        super().__init__("runtime_client")
        self._address = address

    def initialize_client(self, user_agent: str) -> None:
        """Do nothing, because each call opens its own connection."""

    def next(self) -> tuple[bytes, dict[str, Any]]:
        """Wait for an invocation and return its payload and headers. The deadline header is converted to int."""
        payload, headers = self._call("GET", "/next", 200)
        return payload, {**headers, _DEADLINE: int(headers[_DEADLINE])}

    def post_invocation_result(
        self, invoke_id: str, data: bytes, content_type: str, _invocation_id: str | None = None
    ) -> None:
        """Post the handler's response."""
        self._call("POST", f"/{invoke_id}/response", 202, data, {"Content-Type": content_type})

    def post_error(self, invoke_id: str, error: str, _fault: str, _invocation_id: str | None = None) -> None:
        """Post the handler's error."""
        self._call("POST", f"/{invoke_id}/error", 202, error.encode(), {"Content-Type": "application/json"})

    def _call(
        self, method: str, path: str, expected: int, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        connection = http.client.HTTPConnection(self._address)
        try:
            connection.request(method, _INVOCATION + path, body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != expected:
            raise RuntimeError(f"The Runtime API answered {method} {path} with {answer.status}.")
        return content, dict(answer.headers)


def main() -> None:
    """Run awslambdaric with the handler that the command line names."""
    # Bytecode of this version must not be written into the emulator's packages.
    sys.dont_write_bytecode = True
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib is slow to import
    # The AWS SDK needs Python 3.10.
    names = _CLIENT | _SDK if sys.version_info >= (3, 10) else _CLIENT
    sys.meta_path.append(BroughtPackages(os.environ.pop("SMDEBUG_EMULATOR_PACKAGES"), names))
    sys.modules["runtime_client"] = RuntimeClient(os.environ["AWS_LAMBDA_RUNTIME_API"])
    client: Any = importlib.import_module("awslambdaric.__main__")
    client.main(sys.argv)


if __name__ == "__main__":
    main()
