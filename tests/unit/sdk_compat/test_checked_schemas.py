from __future__ import annotations

import types
from typing import Any

import jsonschema
import pytest

from sdk_compat.startup.checked_schemas import check_schemas_once

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
