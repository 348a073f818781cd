"""Hook configuration from debughookconfig.json.

SageMaker's API delivers all its values as text.
"""

import difflib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SAVE_CONFIG_FIELDS, SaveConfig, SaveConfigMode
from smdebug.environment import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_RESOURCE_CONFIG_FILE,
    DEFAULT_SAGEMAKER_CONFIG_FILE,
    DEFAULT_SAGEMAKER_OUTDIR,
    DEFAULT_SAGEMAKER_TENSORBOARD_CONFIG_FILE,
    DEFAULT_SAGEMAKER_TENSORBOARD_PATH,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    is_sagemaker_job,
)
from smdebug.exceptions import SMDebugValueError
from smdebug.job_warnings import HOOK_PARAMETER_IGNORED, warn_user
from smdebug.mode_keys import ModeKeys


class ConfiguredHook(Protocol):
    """The part of a hook that a config file configures after the hook is created: its collections."""

    collection_manager: CollectionManager


HookT = TypeVar("HookT", bound=ConfiguredHook)

_REGEX_KEY = "include_regex"

# Known keys of a hook config: without the check, a misspelt key would go unnoticed.
_TOP_LEVEL_KEYS = frozenset({"S3OutputPath", "LocalPath", "HookParameters", "CollectionConfigurations"})
_COLLECTION_KEYS = frozenset({"CollectionName", "CollectionParameters"})

_SAVE_KEYS = frozenset(
    f"{prefix}{field}"
    for prefix in ("", *(f"{mode.name.lower()}." for mode in ModeKeys))
    for field in SAVE_CONFIG_FIELDS
)
_TENSOR_KEYS = _SAVE_KEYS | {"reductions", "save_raw_tensor", "save_shape", _REGEX_KEY}
HOOK_PARAMETERS = _TENSOR_KEYS | {"save_all", "include_workers", "export_tensorboard", "tensorboard_dir", "dry_run"}
COLLECTION_PARAMETERS = _TENSOR_KEYS | {"save_histogram"}


def parse_bool(arg: object, default: bool) -> bool:
    """Parse a flag given as a boolean, as 0 or 1, or as true, True, false or False; return the default for None.

    Raises:
        ValueError: the value is none of these.
    """
    if arg is None:
        return default
    if isinstance(arg, int) and arg in (0, 1):
        return bool(arg)
    if arg in ("true", "True", "false", "False"):
        return arg in ("true", "True")
    raise ValueError(f"{arg!r} is neither true nor false: write true or false.")


def parse_list(text: str) -> list[str]:
    """Return the items of a comma-separated list, without surrounding spaces."""
    return [item.strip() for item in text.split(",")]


def get_config_file_path() -> str:
    """Return the path of the job's hook config: from the environment, else SageMaker's fixed path."""
    return os.environ.get(CONFIG_FILE_PATH_ENV_STR, DEFAULT_SAGEMAKER_CONFIG_FILE)


def get_json_config_as_dict(json_config_path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Read a hook config, from the default path if none is given.

    Raises:
        FileNotFoundError: the file does not exist.
        json.JSONDecodeError: the file is not JSON.
        SMDebugValueError: the file is not a JSON object.
    """
    path = Path(json_config_path or get_config_file_path())
    config = _read_json(path)
    if not isinstance(config, dict):
        raise SMDebugValueError(f"{path} must hold a JSON object, not {type(config).__name__}.")
    return config


def get_job_out_dir() -> str:
    """Return the folder that the job's hook config names; SageMaker's fixed path if there is no such file.

    Raises:
        json.JSONDecodeError: the file is not JSON.
        SMDebugValueError: the file is not a JSON object.
    """
    try:
        config = get_json_config_as_dict(None)
    except FileNotFoundError:
        return DEFAULT_SAGEMAKER_OUTDIR
    return str(config.get("LocalPath", DEFAULT_SAGEMAKER_OUTDIR))


def collect_hook_config_params(
    params_dict: Mapping[str, Any], default_values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a hook's arguments from a config, without S3OutputPath; unknown keys are logged.

    Raises:
        SMDebugValueError: HookParameters is not an object, or names unknown reductions.
        ValueError: a number or a flag cannot be parsed.
    """
    parameters = _get_parameters(params_dict, "HookParameters")
    _warn_of_unknown_keys("Hook config", params_dict, _TOP_LEVEL_KEYS)
    _warn_of_unknown_keys("HookParameters", parameters, HOOK_PARAMETERS)
    _warn_of_lonely_flags("HookParameters", parameters)
    arguments: dict[str, Any] = {
        "out_dir": params_dict.get("LocalPath", DEFAULT_SAGEMAKER_OUTDIR),
        "save_config": _parse_save_config(parameters, dict.fromkeys(ModeKeys, default_values or {})),
        "reduction_config": _parse_reduction_config(parameters),
        "dry_run": _parse_flag(parameters, "dry_run", default=False),
        "save_all": _parse_flag(parameters, "save_all", default=False),
        "include_regex": _parse_patterns(parameters) or None,
        "include_workers": parameters.get("include_workers", "one"),
    }
    if is_sagemaker_job():
        arguments["tensorboard_dir"] = _get_sagemaker_tensorboard_dir()
    else:
        arguments["export_tensorboard"] = _parse_flag(parameters, "export_tensorboard", default=False)
        arguments["tensorboard_dir"] = parameters.get("tensorboard_dir")
    return arguments


def get_include_collections(params_dict: Mapping[str, Any]) -> list[str]:
    """Return the names of the collections in a config, without duplicates."""
    return list(dict.fromkeys(name for name, _ in _list_collections(params_dict)))


def add_collections_to_manager(
    collection_manager: CollectionManager, params_dict: Mapping[str, Any], hook_params: Mapping[str, Any]
) -> None:
    """Configure the collections of a config; save settings that an entry omits come from the hook.

    Of several entries for one collection, such as the user's and a rule's, the last one gives the save settings, as in
    upstream. Any other parameter is that of the last entry that has it, and regexes are added.

    Args:
        collection_manager: manager of the collections; missing ones are added to it.
        params_dict: content of the config file.
        hook_params: result of `collect_hook_config_params` for the config.

    Raises:
        SMDebugValueError: an entry has no CollectionName, or names unknown reductions.
        ValueError: a number or a flag cannot be parsed.
    """
    save_config: SaveConfig = hook_params["save_config"]
    hook_values = {mode: save_config.get_save_config(mode).to_json_dict() for mode in ModeKeys}
    for entry in params_dict.get("CollectionConfigurations") or ():
        _warn_of_unknown_keys("CollectionConfigurations", entry, _COLLECTION_KEYS)
    for name, parameters in _list_collections(params_dict):
        where = f"CollectionParameters of {name}"
        _warn_of_unknown_keys(where, parameters, COLLECTION_PARAMETERS)
        _warn_of_lonely_flags(where, parameters)
        collection = collection_manager.get(name)
        collection.include(_parse_patterns(parameters))
        with _naming(where):
            collection.save_config = _parse_save_config(parameters, hook_values)
            reduction_config = _parse_reduction_config(parameters)
            if reduction_config:
                collection.reduction_config = reduction_config
            if parameters.get("save_histogram") is not None:
                collection.save_histogram = _parse_flag(parameters, "save_histogram", default=True)


def get_node_id_from_resource_config() -> str | None:
    """Return the name of this host in its job (`algo-1`) from resourceconfig.json; None without that file."""
    path = Path(DEFAULT_RESOURCE_CONFIG_FILE)
    if not path.is_file():
        return None
    host = _read_json(path).get("current_host")
    return None if host is None else str(host)


def create_hook_from_json_config(
    hook_cls: Callable[..., HookT],
    json_config_path: str | os.PathLike[str] | None = None,
    default_values: Mapping[str, Any] | None = None,
) -> HookT:
    """Create a hook from a config file; `default_values` are the framework's default save settings."""
    params = get_json_config_as_dict(json_config_path)
    arguments = collect_hook_config_params(params, default_values)
    hook = hook_cls(include_collections=get_include_collections(params), **arguments)
    add_collections_to_manager(hook.collection_manager, params, arguments)
    return hook


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise json.JSONDecodeError(f"{path} is not JSON: {error.msg}", error.doc, error.pos) from error


def _get_parameters(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    parameters = holder.get(key)
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise SMDebugValueError(f"{key} must be a JSON object, not {parameters!r}.")
    return parameters


def _list_collections(params_dict: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the parameters of each entry of CollectionConfigurations."""
    entries = params_dict.get("CollectionConfigurations") or ()
    if not isinstance(entries, (list, tuple)):
        raise SMDebugValueError(f"CollectionConfigurations must be a list, not {entries!r}.")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("CollectionName"), str):
            raise SMDebugValueError(f"An entry of CollectionConfigurations has no CollectionName: {entry!r}.")
    return [(entry["CollectionName"], _get_parameters(entry, "CollectionParameters")) for entry in entries]


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Put the place before an error's text: several collections may have a parameter of the same name."""
    try:
        yield
    except ValueError as error:
        raise type(error)(f"{where}: {error}") from error


def _parse_save_config(parameters: Mapping[str, Any], defaults: Mapping[ModeKeys, Mapping[str, Any]]) -> SaveConfig:
    """Parse the save settings of each mode: its prefixed key, else the key for all modes, else the default."""
    general = _get_save_values(parameters, "")
    return SaveConfig(
        {
            mode: SaveConfigMode.from_dict(
                {**general, **_get_save_values(parameters, f"{mode.name.lower()}.")}, defaults[mode]
            )
            for mode in ModeKeys
        }
    )


def _get_save_values(parameters: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in SAVE_CONFIG_FIELDS:
        value = parameters.get(f"{prefix}{field}")
        if value is None:
            continue
        key = f"{prefix}{field}"
        if field != "save_steps":
            values[field] = _parse_whole_number(key, value)
        elif isinstance(value, list):
            values[field] = value
        else:
            values[field] = [_parse_whole_number(key, item) for item in parse_list(str(value))]
    return values


def _parse_whole_number(key: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{key}: {value!r} is not a whole number.") from error


def _parse_flag(parameters: Mapping[str, Any], key: str, *, default: bool) -> Any:
    try:
        return parse_bool(parameters.get(key), default)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def _parse_patterns(parameters: Mapping[str, Any]) -> list[str]:
    value = parameters.get(_REGEX_KEY)
    if value is None:
        return []
    if not isinstance(value, str):
        raise SMDebugValueError(f"{_REGEX_KEY} is a text of regexes with commas between them, not {value!r}.")
    return parse_list(value)


def _parse_reduction_config(parameters: Mapping[str, Any]) -> ReductionConfig | None:
    # Flags without `reductions` have no effect, as in upstream smdebug.
    return ReductionConfig.from_dict(parameters) if "reductions" in parameters else None


def _get_sagemaker_tensorboard_dir() -> str | None:
    path = Path(os.environ.get(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, DEFAULT_SAGEMAKER_TENSORBOARD_CONFIG_FILE))
    if not path.is_file():
        return None
    return str(_read_json(path).get("LocalPath", DEFAULT_SAGEMAKER_TENSORBOARD_PATH))


def _warn_of_unknown_keys(where: str, keys: Iterable[str], known: Collection[str]) -> None:
    """Log each unknown key, with the most similar known key."""
    for key in keys:
        if key in known:
            continue
        near = difflib.get_close_matches(str(key), known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(known))}."
        warn_user(HOOK_PARAMETER_IGNORED, "%s: %r is unknown and is ignored. %s", where, key, hint)


def _warn_of_lonely_flags(where: str, parameters: Mapping[str, object]) -> None:
    """Log flags that have an effect only together with `reductions`."""
    if "reductions" in parameters:
        return
    for key in ("save_raw_tensor", "save_shape"):
        if parameters.get(key) is not None:
            warn_user(
                HOOK_PARAMETER_IGNORED,
                '%s: %s is read only together with reductions, and is ignored. Add "reductions": "" beside it.',
                where,
                key,
            )
