"""Fixtures shared by the library's unit tests."""

from tests.unit.smdebug.hooks import plain_environment, run, said
from tests.unit.smdebug.object_storage import moto_endpoint, storage
from tests.unit.smdebug.scripts import config, forking_torch, run_script, run_torch_script

__all__ = [
    "config",
    "forking_torch",
    "moto_endpoint",
    "plain_environment",
    "run",
    "run_script",
    "run_torch_script",
    "said",
    "storage",
]
