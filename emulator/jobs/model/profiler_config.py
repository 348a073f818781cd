"""ProfilerConfig: validation, updates, and the container's configuration file.

Pure functions.
"""

from collections.abc import Mapping
from typing import Any

INTERVALS_MS = (100, 200, 500, 1000, 5000, 60000)
DEFAULT_INTERVAL_MS = 500
DEFAULT_LOCAL_PATH = "/opt/ml/output/profiler"
RULES_WITHOUT_PROFILER = (
    "Invalid ProfilerRuleConfigurations. They can only be given to a job whose profiler is enabled: give it a "
    "ProfilerConfig without DisableProfiler."
)


def is_profiled(request: Mapping[str, Any]) -> bool:
    """Whether a job is profiled: it has a ProfilerConfig that does not disable it."""
    return request.get("ProfilerConfig") is not None and not is_disabled(request)


def is_disabled(request: Mapping[str, Any]) -> bool:
    """Whether the profiler of a job was disabled explicitly: its rules are turned off, too."""
    return bool((request.get("ProfilerConfig") or {}).get("DisableProfiler"))


def list_rules(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the configurations of a job's rules; those that read what its profiler writes come last."""
    return [*(request.get("DebugRuleConfigurations") or ()), *(request.get("ProfilerRuleConfigurations") or ())]


def is_profiler_rule(request: Mapping[str, Any], rule_configuration_name: str) -> bool:
    """Whether a rule of a job reads what its profiler writes; others read the tensors. No two have one name."""
    rules = request.get("ProfilerRuleConfigurations") or ()
    return any(rule["RuleConfigurationName"] == rule_configuration_name for rule in rules)


def find_interval_seconds(request: Mapping[str, Any]) -> float:
    """How often the hosts of a job are measured."""
    interval_ms: int = request["ProfilerConfig"].get("ProfilingIntervalInMilliseconds") or DEFAULT_INTERVAL_MS
    return interval_ms / 1000


def find_output_path(request: Mapping[str, Any]) -> str:
    """Find where in S3 the profiler's files go: beside the model, where ProfilerConfig does not say."""
    configured = (request.get("ProfilerConfig") or {}).get("S3OutputPath")
    return str(configured or request["OutputDataConfig"]["S3OutputPath"])


def describe_fault(request: Mapping[str, Any]) -> str | None:
    """Say what is wrong with the ProfilerConfig of a request, or with what an update made of it; or None."""
    interval_ms = (request.get("ProfilerConfig") or {}).get("ProfilingIntervalInMilliseconds")
    if interval_ms is not None and interval_ms not in INTERVALS_MS:
        return (
            f"Invalid ProfilingIntervalInMilliseconds {interval_ms} in ProfilerConfig. It must be one of "
            f"{', '.join(map(str, INTERVALS_MS))}."
        )
    return None


def merge_update(request: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Return what UpdateTrainingJob's profiler members make of a job's request.

    Rules are added to those that there are; a member of ProfilerConfig that the update leaves out stays.

    Raises:
        ValueError: the update is refused; the text says why.
    """
    changed = dict(request)
    before = request.get("ProfilerConfig") or {}
    if "ProfilerConfig" in update:
        change: Mapping[str, Any] = update["ProfilerConfig"]
        path = change.get("S3OutputPath")
        fixed = before.get("S3OutputPath") or (find_output_path(request) if is_profiled(request) else None)
        if path and fixed and path.rstrip("/") != fixed.rstrip("/"):
            raise ValueError(
                f"S3OutputPath in ProfilerConfig cannot be changed to {path}: the profiler was enabled with {fixed}."
            )
        local_path = (change.get("ProfilingParameters") or {}).get("LocalPath")
        present = (before.get("ProfilingParameters") or {}).get("LocalPath") or DEFAULT_LOCAL_PATH
        if local_path and local_path.rstrip("/") != present.rstrip("/"):
            raise ValueError(
                f"LocalPath in ProfilingParameters cannot be changed to {local_path} of a running job: it is {present}."
            )
        changed["ProfilerConfig"] = {**before, **change}
    if added := update.get("ProfilerRuleConfigurations"):
        if not is_profiled(changed):
            raise ValueError(RULES_WITHOUT_PROFILER)
        changed["ProfilerRuleConfigurations"] = [*(request.get("ProfilerRuleConfigurations") or ()), *added]
    if fault := describe_fault(changed):
        raise ValueError(fault)
    return changed


def find_local_path(request: Mapping[str, Any]) -> str | None:
    """Find where in its container a job's hook leaves its traces, as ProfilingParameters says; None for the default."""
    parameters = (request.get("ProfilerConfig") or {}).get("ProfilingParameters") or {}
    return parameters.get("LocalPath") or None


def build_profiler_configuration(request: Mapping[str, Any], local_path: str) -> dict[str, Any]:
    """Content of profilerconfig.json: ProfilerConfig, with the place for the traces as the container sees it."""
    configuration = dict(request.get("ProfilerConfig") or {})
    # Without parameters nothing is traced: there is no place to name, and naming one would switch it on.
    if parameters := configuration.get("ProfilingParameters"):
        configuration["ProfilingParameters"] = {**parameters, "LocalPath": local_path}
    return configuration
