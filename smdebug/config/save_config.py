"""Save config: the steps to save, for each mode."""

import json
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys

DEFAULT_SAVE_CONFIG_INTERVAL = 500
DEFAULT_SAVE_CONFIG_START_STEP = 0
DEFAULT_SAVE_CONFIG_END_STEP: int | None = None
DEFAULT_SAVE_CONFIG_SAVE_STEPS: list[int] = []
SAVE_CONFIG_FIELDS = ("save_interval", "start_step", "end_step", "save_steps")


class SaveConfigMode:
    """Which steps of one mode are saved: those in `save_steps`, and those at an interval between two steps."""

    def __init__(
        self,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        """Set which steps are saved; None selects the default: every 500th step from step 0 on, without an end.

        A negative interval counts as its absolute value, as in smdebug.

        Raises:
            ValueError: a number cannot be parsed as an integer.
            SMDebugValueError: `save_steps` is not a list of integers, or the interval is 0.
        """
        interval = _parse_number("save_interval", save_interval)
        start = _parse_number("start_step", start_step)
        self.save_interval = DEFAULT_SAVE_CONFIG_INTERVAL if interval is None else interval
        self.start_step = DEFAULT_SAVE_CONFIG_START_STEP if start is None else start
        self.end_step = _parse_number("end_step", end_step)
        steps = list(DEFAULT_SAVE_CONFIG_SAVE_STEPS) if save_steps is None else save_steps
        if not isinstance(steps, list) or not all(isinstance(step, int) for step in steps):
            raise SMDebugValueError(f"save_steps must be a list of integers, not {steps!r}.")
        if self.save_interval == 0:
            raise SMDebugValueError("save_interval 0 selects no step: give 1 or more, or use save_steps alone.")
        self.save_steps = steps

    def should_save_step(self, step_num: int) -> bool:
        """Return whether mode step `step_num` is saved; the end is exclusive, and the interval counts from step 0."""
        if step_num in self.save_steps:
            return True
        before_end = self.end_step is None or step_num < self.end_step
        return step_num >= self.start_step and before_end and step_num % self.save_interval == 0

    def get_next_step(self, step: int) -> int | None:
        """Return the first saved mode step from `step` on; None if there is none."""
        interval = abs(self.save_interval)
        first = -(-max(step, self.start_step) // interval) * interval
        found = [single for single in self.save_steps if single >= step]
        if self.end_step is None or first < self.end_step:
            found.append(first)
        return min(found, default=None)

    def to_json_dict(self) -> dict[str, Any]:
        """Return the dictionary that is written to collections files."""
        return {
            "save_interval": self.save_interval,
            "save_steps": self.save_steps,
            "start_step": self.start_step,
            "end_step": self.end_step,
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any], default_values: Mapping[str, Any] | None = None) -> "SaveConfigMode":
        """Create a config from values by name; `default_values` supplies missing ones. Unknown names are ignored.

        Raises:
            SMDebugTypeError: the values are not a dict.
        """
        if not isinstance(params, Mapping):
            raise SMDebugTypeError(f"SaveConfigMode.from_dict takes a dict, not {params!r}.")
        merged = {**(default_values or {}), **params}
        return cls(**{name: merged[name] for name in SAVE_CONFIG_FIELDS if name in merged})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SaveConfigMode) and self.to_json_dict() == other.to_json_dict()

    # Mutable, so it can be used as a key only in its JSON form.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SaveConfigMode({', '.join(f'{k}={v!r}' for k, v in self.to_json_dict().items())})"


def _parse_number(name: str, value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a whole number, not {value!r}.") from error


def _parse_mode(name: Any) -> ModeKeys:
    if name not in ModeKeys.__members__:
        raise KeyError(f"{name!r} is not a mode: a save config by mode knows {', '.join(ModeKeys.__members__)}.")
    return ModeKeys[name]


class SaveConfig:
    """Which steps are saved, for every mode."""

    def __init__(
        self,
        mode_save_configs: Mapping[ModeKeys, SaveConfigMode | None] | None = None,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        """Set one config for each mode, or one set of values for all modes.

        A mode that is missing from `mode_save_configs` stays open. An open mode of a collection is filled in from its
        hook, and that of a hook from the defaults.

        Raises:
            SMDebugTypeError: `mode_save_configs` is not a dict.
            SMDebugValueError: a key is not a mode, a value is not a SaveConfigMode, or SaveConfigMode refuses a value.
        """
        self.mode_save_configs: dict[ModeKeys, SaveConfigMode | None]
        if mode_save_configs is None:
            self.mode_save_configs = {
                mode: SaveConfigMode(save_interval, start_step, end_step, save_steps) for mode in ModeKeys
            }
            return
        if not isinstance(mode_save_configs, Mapping):
            raise SMDebugTypeError(
                f"The first argument of SaveConfig is a dict of modes, not {mode_save_configs!r}: an interval is given "
                "as save_interval."
            )
        for mode, conf in mode_save_configs.items():
            if not isinstance(mode, ModeKeys) or not (conf is None or isinstance(conf, SaveConfigMode)):
                raise SMDebugValueError(
                    f"A SaveConfig by mode maps modes to SaveConfigMode; {mode!r}: {conf!r} does neither."
                )
        self.mode_save_configs = {mode: mode_save_configs.get(mode) for mode in ModeKeys}

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode:
        """Return the config of `mode`; raises SMDebugValueError while that mode is open."""
        conf = self.mode_save_configs[mode]
        if conf is None:
            raise SMDebugValueError(f"This SaveConfig holds nothing for mode {mode.name}.")
        return conf

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode) -> None:
        """Replace the config of one mode; raises SMDebugValueError for arguments of other types."""
        if not isinstance(mode, ModeKeys) or not isinstance(save_config_mode, SaveConfigMode):
            raise SMDebugValueError(f"set_save_config takes a mode and a SaveConfigMode, not {mode!r}.")
        self.mode_save_configs[mode] = save_config_mode

    def should_save_step(self, mode: ModeKeys, step_num: int) -> bool:
        """Return whether step `step_num` of `mode` is saved."""
        return self.get_save_config(mode).should_save_step(step_num)

    def filled_from(self, other: "SaveConfig") -> "SaveConfig":
        """Return a copy of this config with its open modes taken from `other`."""
        return SaveConfig({mode: self.mode_save_configs[mode] or other.mode_save_configs[mode] for mode in ModeKeys})

    def merge_default_save_config(self, default_save_config: "SaveConfig") -> None:
        """Take the open modes from another config, and from the defaults if they are open there, too."""
        self.mode_save_configs = self.filled_from(default_save_config).filled_from(SaveConfig()).mode_save_configs

    def to_json_dict(self) -> dict[str, dict[str, Any] | None]:
        """Return the dictionary for collections files: mode name to the mode's dictionary, None for an open mode."""
        return {mode.name: conf.to_json_dict() if conf else None for mode, conf in self.mode_save_configs.items()}

    def to_json(self) -> str:
        """Return `to_json_dict` as JSON text."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_json(cls, json_str: str) -> "SaveConfig":
        """Create a config from the text of `to_json`."""
        return cls.from_dict(json.loads(json_str))

    @classmethod
    def from_dict(
        cls,
        params: Mapping[Any, SaveConfigMode | Mapping[str, Any] | None],
        default_values: Mapping[str, Any] | None = None,
    ) -> "SaveConfig":
        """Create a config from a mapping of modes (enum members or upper-case names) to configs.

        Raises:
            KeyError: a mode name is unknown.
            SMDebugTypeError: the mapping is not a dict, or the value of a mode neither a dict nor a SaveConfigMode.
        """
        if not isinstance(params, Mapping):
            raise SMDebugTypeError(f"SaveConfig.from_dict takes a dict by mode, not {params!r}.")
        confs: dict[ModeKeys, SaveConfigMode | None] = {}
        for key, value in params.items():
            mode = key if isinstance(key, ModeKeys) else _parse_mode(key)
            if value is None or isinstance(value, SaveConfigMode):
                confs[mode] = value
            elif hasattr(value, "items"):
                confs[mode] = SaveConfigMode.from_dict(value, default_values)
            else:
                raise SMDebugTypeError(f"The save config of mode {mode.name} must be a dict, not {value!r}.")
        return cls(confs)

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> "SaveConfig":
        """Create a config of one config for all modes."""
        return cls(dict.fromkeys(ModeKeys, save_config_mode))

    @classmethod
    def parse(cls, obj: object) -> "SaveConfig":
        """Convert None, a SaveConfig, a SaveConfigMode for all modes, or a dict by mode to a SaveConfig.

        Raises:
            SMDebugTypeError: the value has any other type.
            KeyError: a mode name is unknown.
        """
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, dict):
            return cls.from_dict(obj)
        raise SMDebugTypeError(f"A save config is a SaveConfig, a SaveConfigMode or a dict by mode, not {obj!r}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SaveConfig) and self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SaveConfig({self.mode_save_configs!r})"
