import pytest

from container_runtime.runtime import NETWORK_CLOSED, Exit
from emulator.jobs.model.failures import ContainerFailure, describe_algorithm_error
from emulator.jobs.staging.instance_types import GIB, find_memory_bytes


def describe(exit_status: Exit, failure_text: str, last_lines: list[str]) -> str:
    return describe_algorithm_error([ContainerFailure("algo-1", exit_status, failure_text, last_lines)])


def test_failure_file_wins_over_the_log() -> None:
    assert describe(Exit(1), " why \n", ["a line"]) == "AlgorithmError: why, exit code: 1"


def test_last_lines_stand_in_for_it_and_the_end_is_kept() -> None:
    lines = ["Traceback", "", "x" * 3_000, "ValueError: the reason"]
    text = describe(Exit(1), "", lines)
    assert text.endswith("ValueError: the reason, exit code: 1")
    assert len(text) == 1024


def test_memory_is_named_plainly_however_long_the_log() -> None:
    text = describe(Exit(137, out_of_memory=True), "", ["y" * 3_000])
    assert text.startswith("AlgorithmError: The container ran out of memory and was killed.")
    assert text.endswith("yyy, exit code: 137")
    assert len(text) <= 1024


def test_long_failure_file_leaves_space_for_the_exit_code() -> None:
    text = describe(Exit(255), "z" * 1024, [])
    assert text.endswith("z, exit code: 255")
    assert len(text) == 1024


@pytest.mark.parametrize(
    ("instance_type", "gib"),
    [
        ("ml.t3.medium", 4),
        ("ml.m5.large", 8),
        ("ml.m5.24xlarge", 384),
        ("ml.c5.xlarge", 8),
        ("ml.r5.2xlarge", 64),
        ("ml.p3.2xlarge", 61),
        ("ml.g4dn.xlarge", 16),
        ("ml.quantum.large", None),
        ("ml.t3.huge", None),
        ("local", None),
        (None, None),
    ],
)
def test_memory_of_instance_types(instance_type: str | None, gib: int | None) -> None:
    assert find_memory_bytes(instance_type) == (None if gib is None else gib * GIB)


def test_error_that_the_toolkit_does_not_name_is_taken_from_the_log() -> None:
    failure = 'ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""\nCommand "python train.py"'
    log = ["Traceback", "RuntimeError: upside down", "", "... ERROR    Reporting training FAILURE", "ErrorMessage", "x"]
    assert describe(Exit(1), failure, log) == (
        'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "RuntimeError: upside down"\n'
        'Command "python train.py", exit code: 1'
    )
    assert describe(Exit(1), failure, []) == f"AlgorithmError: {failure}, exit code: 1"


def test_script_killed_below_the_toolkit_is_named_plainly() -> None:
    failure = 'ExecuteUserScriptError:\nExitCode -9\nErrorMessage ""\nCommand "python train.py"'
    text = describe(Exit(1), failure, ["15"])
    assert text.startswith("AlgorithmError: The training was killed by signal SIGKILL, as the kernel does when memory")
    assert failure in text
    by_engine = describe(Exit(1, out_of_memory=True), failure, ["15"])
    assert by_engine.startswith("AlgorithmError: The container ran out of memory and was killed.")


def test_exception_is_named_though_other_output_comes_after_it() -> None:
    """Standard output and standard error are separate streams of an engine: their order is not kept."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/ml/code/train.py", line 10, in <module>',
        '    raise RuntimeError("the labels are upside down")',
        "RuntimeError: the labels are upside down",
        "before the end",
        "2026-01-01 ERROR    Reporting training FAILURE",
    ]
    reason = describe(Exit(1), 'ExitCode 1\nErrorMessage ""', lines)
    assert 'ErrorMessage "RuntimeError: the labels are upside down"' in reason


def test_exception_is_named_though_its_traceback_is_longer_than_what_is_kept_of_the_log() -> None:
    call = ['  File "torch/nn/modules/module.py", line 1775, in _call_impl', "    return forward_call(*args)"]
    lines = [
        *call * 20,
        "           ^^^^^^^^^^^^^^^^^^^",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x2)",
        "[2026-01-01 train:7 WARNING saved_collections.py:112] Collection mine saved nothing.",
        "2026-01-01 ERROR    Reporting training FAILURE",
    ]
    reason = describe(Exit(1), 'ExitCode 1\nErrorMessage ""', lines)
    assert 'ErrorMessage "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x2)"' in reason


def test_first_two_of_many_failed_hosts_are_named_and_each_gets_its_space() -> None:
    lost = ["Traceback", "RuntimeError: Connection closed by peer " + "z" * 3_000 + " end"]
    failures = [
        ContainerFailure("algo-2", Exit(1), "", ["ValueError: the labels are upside down"]),
        ContainerFailure("algo-1", Exit(1), "", lost),
        ContainerFailure("algo-3", Exit(1), "", lost),
    ]
    text = describe_algorithm_error(failures, 3)
    assert text.startswith(
        "AlgorithmError: algo-2: ValueError: the labels are upside down, exit code: 1; algo-1: ... zzz"
    )
    assert text.endswith("zz end, exit code: 1")
    assert len(text) <= 1024
    assert describe_algorithm_error(failures[:1], 3) == (
        "AlgorithmError: algo-2: ValueError: the labels are upside down, exit code: 1"
    )


def test_a_missing_network_is_reported_with_what_opens_it() -> None:
    lines = ["gaierror: [Errno -3] Temporary failure in name resolution", f"{NETWORK_CLOSED}: and so on"]
    assert describe(Exit(1), "", lines) == (
        "AlgorithmError: gaierror: [Errno -3] Temporary failure in name resolution (The network of its container is "
        "closed: start --allow-internet opens it.), exit code: 1"
    )
    assert describe(Exit(1), 'ErrorMessage ""', lines).startswith('AlgorithmError: ErrorMessage "gaierror: [Errno -3]')
    assert "start --allow-internet" in describe(Exit(1), 'ErrorMessage ""', lines)
