from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from sdk_compat.startup.checked_schemas import check_schemas_once
from tests.unit.sdk_compat.shell_of_env import run_in_shell_of_env

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def wrap() -> Any:
    module = types.SimpleNamespace(jsonschema=jsonschema)
    check_schemas_once(module)
    assert module.jsonschema is not jsonschema
    return module.jsonschema


def test_a_schema_is_checked_at_its_first_use_only(monkeypatch: pytest.MonkeyPatch) -> None:
    validator = jsonschema.validators.validator_for(SCHEMA)
    checked: list[Any] = []
    monkeypatch.setattr(validator, "check_schema", checked.append)
    replacement = wrap()
    for count in range(3):
        replacement.validate({"count": count}, SCHEMA)
    assert checked == [SCHEMA]
    replacement.validate({"count": 1}, dict(SCHEMA))
    assert len(checked) == 2


@pytest.mark.parametrize("instance", [{}, {"count": "one"}, [], None])
def test_what_is_invalid_raises_what_jsonschema_raises(instance: Any) -> None:
    replacement = wrap()
    with pytest.raises(replacement.ValidationError) as ours:
        replacement.validate(instance, SCHEMA)
    with pytest.raises(jsonschema.ValidationError) as original:
        jsonschema.validate(instance, SCHEMA)
    assert str(ours.value) == str(original.value)
    with pytest.raises(jsonschema.SchemaError):
        replacement.validate(instance, {"type": "no type"})


def test_a_module_whose_jsonschema_is_something_else_is_left_alone() -> None:
    module = types.SimpleNamespace(jsonschema="the user's own")
    check_schemas_once(module)
    assert module.jsonschema == "the user's own"
    module.jsonschema = replaced = wrap()
    check_schemas_once(module)
    assert module.jsonschema is replaced
    check_schemas_once(types.SimpleNamespace())


@pytest.mark.slow
def test_a_shell_with_the_variables_of_env_has_the_sdk_check_its_schema_once(tmp_path: Path) -> None:
    source = (
        "import jsonschema\n"
        "checks = []\n"
        "jsonschema.Draft202012Validator.check_schema = checks.append\n"
        "import sagemaker.session, sagemaker.utils\n"
        "config = sagemaker.config.load_sagemaker_config()\n"
        "path = 'SageMaker.PythonSDK.Modules.TelemetryOptOut'\n"
        "found = {sagemaker.utils.get_sagemaker_config_value(None, path, config) for _ in range(3)}\n"
        "print(found, len(checks))"
    )
    assert run_in_shell_of_env(source, tmp_path).split()[-2:] == ["{True}", "1"]
