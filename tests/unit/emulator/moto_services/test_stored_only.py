from __future__ import annotations

from botocore import xform_name

from emulator.moto_services.stored_only import STORED_ONLY
from emulator.moto_services.wsgi import has_sagemaker_operation
from emulator.operations import find_operations


def test_each_is_motos_and_none_is_the_emulators_own() -> None:
    assert not STORED_ONLY.keys() & find_operations().keys()
    assert [name for name in STORED_ONLY if not has_sagemaker_operation(xform_name(name))] == []
