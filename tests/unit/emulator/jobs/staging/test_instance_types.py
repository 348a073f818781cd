import pytest

from emulator.jobs.staging.instance_types import find_cpus


@pytest.mark.parametrize(
    ("instance_type", "cpus"),
    [
        ("ml.m5.large", 2),
        ("ml.t3.medium", 2),
        ("ml.c5.xlarge", 4),
        ("ml.p4d.24xlarge", 96),
        ("ml.m5.metal", None),
        ("local", None),
        (None, None),
    ],
)
def test_processors_of_an_instance(instance_type: str | None, cpus: int | None) -> None:
    assert find_cpus(instance_type) == cpus
