"""Reduction config: a tensor's saved form, as values, shape or statistics."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.format.reductions import ALLOWED_NORMS as ALLOWED_NORMS
from smdebug.format.reductions import ALLOWED_REDUCTIONS as ALLOWED_REDUCTIONS

ALLOWED_PARAMS = ["reductions", "abs_reductions", "norms", "abs_norms", "save_raw_tensor", "save_shape"]
_ABS_PREFIX = "abs_"
_NORM_SUFFIX = "_norm"
# As they are written in a hook config, where one text names reductions and norms.
_NAMES_IN_TEXT = (*ALLOWED_REDUCTIONS, *(f"{name}{_NORM_SUFFIX}" for name in ALLOWED_NORMS))


class ReductionConfig:
    """What is saved of each tensor of a collection; raw values are saved only with `save_raw_tensor`."""

    def __init__(
        self,
        reductions: Iterable[str] | None = None,
        abs_reductions: Iterable[str] | None = None,
        norms: Iterable[str] | None = None,
        abs_norms: Iterable[str] | None = None,
        save_raw_tensor: bool = False,
        save_shape: bool = False,
    ) -> None:
        """Set operations by name; those of `abs_reductions` and `abs_norms` apply to absolute values.

        Raises:
            SMDebugValueError: an operation is not in ALLOWED_REDUCTIONS or ALLOWED_NORMS, a list of names is given as a
                string, or a flag is not a bool.
        """
        self.reductions = _allowed(reductions, ALLOWED_REDUCTIONS, "reductions")
        self.abs_reductions = _allowed(abs_reductions, ALLOWED_REDUCTIONS, "abs_reductions")
        self.norms = _allowed(norms, ALLOWED_NORMS, "norms")
        self.abs_norms = _allowed(abs_norms, ALLOWED_NORMS, "abs_norms")
        for name, value in (("save_raw_tensor", save_raw_tensor), ("save_shape", save_shape)):
            if not isinstance(value, bool):
                raise SMDebugValueError(f"{name} must be True or False, not {value!r}.")
        self.save_raw_tensor = save_raw_tensor
        self.save_shape = save_shape

    def operations(self) -> list[tuple[str, bool]]:
        """Return a pair (operation, on absolute values) for each number to compute; norms are named l1 and l2."""
        plain = [(name, False) for name in (*self.reductions, *self.norms)]
        return plain + [(name, True) for name in (*self.abs_reductions, *self.abs_norms)]

    def to_json_dict(self) -> dict[str, Any]:
        """Return the dictionary for collections files, with the operations as one comma-separated string."""
        names = [
            *self.reductions,
            *(f"{norm}{_NORM_SUFFIX}" for norm in self.norms),
            *(f"{_ABS_PREFIX}{name}" for name in self.abs_reductions),
            *(f"{_ABS_PREFIX}{norm}{_NORM_SUFFIX}" for norm in self.abs_norms),
        ]
        return {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": ",".join(names),
            "save_shape": self.save_shape,
        }

    def to_json(self) -> str:
        """Return `to_json_dict` as JSON text."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_json(cls, json_str: str) -> "ReductionConfig":
        """Create a config from the text of `to_json`."""
        return cls.from_dict(json.loads(json_str))

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> "ReductionConfig":
        """Create a config from the dictionary of `to_json_dict`; other keys are ignored.

        Raises:
            SMDebugValueError: this is not a dict, an operation is unknown, or a flag is not a bool.
        """
        if not isinstance(params, Mapping):
            raise SMDebugValueError(f"ReductionConfig.from_dict takes a dict, not {params!r}.")
        text = params.get("reductions") or ""
        if not isinstance(text, str):
            raise SMDebugValueError(f"reductions is a text of names with commas between them, not {text!r}.")
        groups: dict[str, list[str]] = {}
        for name in filter(None, map(str.strip, text.split(","))):
            base = name.removeprefix(_ABS_PREFIX)
            if base not in _NAMES_IN_TEXT:
                hint = f" Write it {name}{_NORM_SUFFIX}." if base in ALLOWED_NORMS else ""
                raise SMDebugValueError(
                    f"reductions holds {name!r}, which is none of {', '.join(_NAMES_IN_TEXT)}, nor one of these with "
                    f"the prefix {_ABS_PREFIX}.{hint}"
                )
            kind = "norms" if base.endswith(_NORM_SUFFIX) else "reductions"
            parameter = kind if base == name else f"{_ABS_PREFIX}{kind}"
            groups.setdefault(parameter, []).append(base.removesuffix(_NORM_SUFFIX))
        return cls(
            **groups,
            save_raw_tensor=params.get("save_raw_tensor", False),
            save_shape=params.get("save_shape", False),
        )

    @classmethod
    def parse(cls, reduction_config: object) -> "ReductionConfig | None":
        """Convert a dict to a ReductionConfig; None and a ReductionConfig are returned unchanged.

        Raises:
            SMDebugTypeError: the value has any other type.
            SMDebugValueError: see `from_dict`.
        """
        if reduction_config is None or isinstance(reduction_config, ReductionConfig):
            return reduction_config
        if isinstance(reduction_config, dict):
            return cls.from_dict(reduction_config)
        raise SMDebugTypeError(f"A reduction config is a ReductionConfig or a dict, not {reduction_config!r}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReductionConfig) and self.to_json_dict() == other.to_json_dict()

    # Mutable, so it cannot be a key.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ReductionConfig.from_dict({self.to_json_dict()!r})"


def _allowed(names: Iterable[str] | None, allowed: list[str], parameter: str) -> list[str]:
    if isinstance(names, str):
        raise SMDebugValueError(f"{parameter} is a list of names, not the text {names!r}.")
    found = list(names or ())
    for name in found:
        if name not in allowed:
            raise SMDebugValueError(f"{parameter} holds {name!r}, which is none of {', '.join(allowed)}.")
    return found
