"""Whether this process's hook may be made at all: what USE_SMDEBUG says."""

from __future__ import annotations

from smdebug.core.singleton import is_switched_on

__all__ = ["ConfigValidator", "get_config_validator", "reset_config_validator"]


class ConfigValidator:
    """Reads the environment each time it is asked: nothing is turned off behind a script's back."""

    def __init__(self, framework: object = None) -> None:
        """Take the framework's name, for whoever asks; every version that runs is supported."""
        self.framework = framework

    def validate_training_job(self) -> bool:
        """Tell whether hooks may be made; ValueError for a USE_SMDEBUG that is neither on nor off."""
        return is_switched_on()


_validator: ConfigValidator | None = None


def get_config_validator(framework: object = None) -> ConfigValidator:
    """Return this process's validator."""
    global _validator
    if _validator is None:
        _validator = ConfigValidator(framework)
    return _validator


def reset_config_validator() -> None:
    """Forget this process's validator."""
    global _validator
    _validator = None
