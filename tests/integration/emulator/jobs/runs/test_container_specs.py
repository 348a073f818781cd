"""Tests of the containers that jobs ask a back end for."""

from dataclasses import replace
from typing import Any

import pytest

from container_runtime.spec import ContainerSpec
from emulator.jobs.runs.attempt import build_typical_spec
from tests.integration.emulator.jobs.job_harness import JobHarness

GIB = 1 << 30


@pytest.fixture
def specs(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> list[ContainerSpec]:
    """The specs that the back end was given, oldest first."""
    given: list[ContainerSpec] = []
    start = harness.runtime.start

    def record(spec: ContainerSpec) -> str:
        given.append(spec)
        return start(spec)

    monkeypatch.setattr(harness.runtime, "start", record)
    return given


def test_a_container_is_what_the_request_and_its_instance_type_say(
    harness: JobHarness, specs: list[ContainerSpec]
) -> None:
    request = harness.request(
        script="pathlib.Path(ml / 'output/failure').write_text(' '.join(sys.argv[1:])); sys.exit(1)"
    )
    request["AlgorithmSpecification"]["ContainerArguments"] = ["one", "two"]
    request["ResourceConfig"]["InstanceType"] = "ml.g4dn.12xlarge"
    done = harness.run(request)
    assert done["FailureReason"].startswith("AlgorithmError: one two"), done
    (spec,) = specs
    assert spec.image == "tiny:1"
    assert spec.entrypoint == tuple(request["AlgorithmSpecification"]["ContainerEntrypoint"])
    assert spec.command == ("one", "two")
    assert spec.hostname == "algo-1"
    assert (spec.cpus, spec.gpus, spec.memory_bytes, spec.shm_bytes) == (48, 4, 192 * GIB, 2 * GIB)
    assert spec.read_only_root
    assert spec.scratch is not None
    assert spec.scratch.is_relative_to(harness.settings.state_dir)
    assert {mount.target for mount in spec.mounts} == {"/opt/ml"}


@pytest.mark.parametrize("entrypoint", [None, ["python3", "-c", ""]])
def test_an_image_s_own_entry_point_is_told_to_train(
    harness: JobHarness, specs: list[ContainerSpec], entrypoint: list[str] | None
) -> None:
    request = harness.request()
    request["AlgorithmSpecification"].pop("ContainerEntrypoint")
    if entrypoint is not None:
        request["AlgorithmSpecification"]["ContainerEntrypoint"] = entrypoint
    harness.run(request)
    assert [(spec.entrypoint, spec.command) for spec in specs] == [
        (None, ("train",)) if entrypoint is None else (tuple(entrypoint), ())
    ]


def test_containers_of_jobs_are_like_the_typical_ones_of_which_spare_ones_are_made(
    harness: JobHarness, specs: list[ContainerSpec]
) -> None:
    request = harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("R", "pass")])
    request["AlgorithmSpecification"].pop("ContainerEntrypoint")
    request["ResourceConfig"]["InstanceType"] = "local"
    harness.run(request)
    assert sorted(spec.image for spec in specs) == ["rules:latest", "tiny:1"]
    for spec in specs:
        typical = build_typical_spec(spec.image.replace("rules", "sagemaker-debugger-rules"), harness.settings)
        of_the_job: dict[str, Any] = {
            name: getattr(spec, name)
            for name in ("name", "image", "environment", "labels", "mounts", "scratch", "memory_bytes", "cpus")
        }
        assert replace(typical, **of_the_job) == spec
        assert [mount.target for mount in typical.mounts] == [mount.target for mount in spec.mounts]
        assert (typical.scratch is None) == (spec.scratch is None)
