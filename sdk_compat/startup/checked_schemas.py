"""Schemas of the SageMaker SDK's configuration, checked only once.

The SDK validates its configuration each time it looks for a value in it, twenty times for an estimator.
``jsonschema.validate`` also checks the SDK's schema each time, which takes 50 ms, although it never changes. In the
modules that validate, ``jsonschema`` is replaced by a ``CheckedSchemas``.

This module imports only modules that Python's start-up has already imported, and supports the same Python versions as
the SDK.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

VALIDATING_MODULES = ("sagemaker.config.config", "sagemaker.core.config.config", "sagemaker.core.config.config_manager")
"""The first module is of version 2 of the SDK; the others are of version 3."""


class CheckedSchemas:
    """A replacement of the module ``jsonschema`` whose ``validate`` checks each schema at its first use."""

    def __init__(self, jsonschema: Any) -> None:
        self._jsonschema = jsonschema
        self._validators: list[tuple[Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jsonschema, name)

    def validate(self, instance: Any, schema: Any) -> None:
        """Raise the same errors as ``jsonschema.validate``."""
        validator = next((found for checked, found in self._validators if checked is schema), None)
        if validator is None:
            kind = self._jsonschema.validators.validator_for(schema)
            kind.check_schema(schema)
            validator = kind(schema)
            self._validators.append((schema, validator))
        error = self._jsonschema.exceptions.best_match(validator.iter_errors(instance))
        if error is not None:
            raise error


def check_schemas_once(module: Any) -> None:
    """Replace ``jsonschema`` by a ``CheckedSchemas`` in a module that validates the SDK's configuration."""
    jsonschema = getattr(module, "jsonschema", None)
    if jsonschema is not None and jsonschema is sys.modules.get("jsonschema"):
        module.jsonschema = CheckedSchemas(jsonschema)
