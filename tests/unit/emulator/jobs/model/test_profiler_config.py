"""Tests of ProfilerConfig in requests and in UpdateTrainingJob."""

from typing import Any

import pytest

from emulator.jobs.model.profiler_config import (
    build_profiler_configuration,
    describe_fault,
    find_interval_seconds,
    find_output_path,
    is_profiled,
    merge_update,
)

OUTPUT = {"OutputDataConfig": {"S3OutputPath": "s3://bkt/out"}}
RULE = {"RuleConfigurationName": "P", "RuleEvaluatorImage": "rules:latest"}


def request(profiler: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return {**OUTPUT, **members} | ({} if profiler is None else {"ProfilerConfig": profiler})


def test_what_a_request_leaves_out() -> None:
    assert (find_interval_seconds(request({})), find_output_path(request({}))) == (0.5, "s3://bkt/out")
    given = request({"ProfilingIntervalInMilliseconds": 100, "S3OutputPath": "s3://bkt/p"})
    assert (find_interval_seconds(given), find_output_path(given)) == (0.1, "s3://bkt/p")
    assert not is_profiled(request())
    assert find_output_path(request()) == "s3://bkt/out"


@pytest.mark.parametrize("interval_ms", [0, 99, 300, 60001, -500])
def test_an_unknown_interval(interval_ms: int) -> None:
    fault = describe_fault(request({"ProfilingIntervalInMilliseconds": interval_ms}))
    assert fault is not None
    assert f"ProfilingIntervalInMilliseconds {interval_ms} " in fault
    assert "100, 200, 500, 1000, 5000, 60000" in fault


def test_members_that_an_update_leaves_out_stay_and_rules_are_added() -> None:
    before = request(
        {"S3OutputPath": "s3://bkt/p", "ProfilingParameters": {"A": "1"}}, ProfilerRuleConfigurations=[RULE]
    )
    kept = dict(before)
    other = {**RULE, "RuleConfigurationName": "Q"}
    changed = merge_update(
        before,
        {
            "ProfilerConfig": {"ProfilingIntervalInMilliseconds": 200, "ProfilingParameters": {}},
            "ProfilerRuleConfigurations": [other],
        },
    )
    assert changed["ProfilerConfig"] == {
        "S3OutputPath": "s3://bkt/p",
        "ProfilingParameters": {},
        "ProfilingIntervalInMilliseconds": 200,
    }
    assert changed["ProfilerRuleConfigurations"] == [RULE, other]
    assert before == kept
    disabled = merge_update(changed, {"ProfilerConfig": {"DisableProfiler": True}})
    assert disabled["ProfilerConfig"] == {**changed["ProfilerConfig"], "DisableProfiler": True}
    assert not is_profiled(disabled)
    assert merge_update(disabled, {"ProfilerRuleConfigurations": []}) == disabled
    assert merge_update(request(), {"ResourceConfig": {}}) == request()


@pytest.mark.parametrize(
    ("before", "update", "said"),
    [
        ({"S3OutputPath": "s3://bkt/p"}, {"S3OutputPath": "s3://bkt/q"}, "cannot be changed to s3://bkt/q"),
        ({}, {"S3OutputPath": "s3://bkt/q"}, "was enabled with s3://bkt/out"),
        ({"DisableProfiler": True, "S3OutputPath": "s3://b/p"}, {"S3OutputPath": "s3://b/q"}, "with s3://b/p"),
        ({}, {"ProfilingParameters": {"LocalPath": "/opt/ml/x"}}, "it is /opt/ml/output/profiler"),
        ({}, {"ProfilingIntervalInMilliseconds": 1}, "must be one of"),
    ],
)
def test_an_update_that_is_refused(before: dict[str, Any], update: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        merge_update(request(before), {"ProfilerConfig": update})


def test_an_update_that_says_what_is_there() -> None:
    """The SDK sends the path again, and the default folder with its FrameworkProfile."""
    for before, path in (({"S3OutputPath": "s3://bkt/p"}, "s3://bkt/p/"), ({}, "s3://bkt/out"), (None, "s3://new/x")):
        parameters = {"LocalPath": "/opt/ml/output/profiler/"}
        changed = merge_update(
            request(before), {"ProfilerConfig": {"S3OutputPath": path, "ProfilingParameters": parameters}}
        )
        assert find_output_path(changed) == path
    never_on = request({"DisableProfiler": True})
    assert is_profiled(merge_update(never_on, {"ProfilerConfig": {"DisableProfiler": False, "S3OutputPath": "s3://n"}}))


def test_rules_need_a_profiler() -> None:
    for before in (request(), request({"DisableProfiler": True})):
        with pytest.raises(ValueError, match="whose profiler is enabled"):
            merge_update(before, {"ProfilerRuleConfigurations": [RULE]})


def test_the_container_gets_its_own_folder_where_something_is_traced() -> None:
    told = build_profiler_configuration(request({"ProfilingParameters": {"LocalPath": "/a", "B": "1"}}), "/tmp/ml/a")
    assert told == {"ProfilingParameters": {"LocalPath": "/tmp/ml/a", "B": "1"}}
    nothing: list[dict[str, Any]] = [{}, {"ProfilingParameters": {}}]
    for configuration in nothing:
        assert build_profiler_configuration(request(configuration), "/tmp/ml/a") == configuration
