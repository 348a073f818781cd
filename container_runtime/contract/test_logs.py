"""Tests of the logs of containers."""

import time

from container_runtime.contract.programs import in_container, python, run
from container_runtime.runtime import MAX_LINE_BYTES, ContainerRuntime
from container_runtime.spec import Mount


def test_log_has_every_line_from_the_first_to_a_last_one_without_newline(runtime: ContainerRuntime) -> None:
    before_ms = time.time() * 1000
    source = "import sys; print('first'); print(); print('third', flush=True); sys.stdout.write('last')"
    container = runtime.start(python(source))
    lines = list(runtime.logs(container))
    assert [line.text for line in lines] == ["first", "", "third", "last"]
    assert all(before_ms - 1000 <= line.timestamp_ms <= time.time() * 1000 + 1000 for line in lines)
    assert list(runtime.logs(container)) == lines


def test_log_holds_both_streams(runtime: ContainerRuntime) -> None:
    _, lines = run(runtime, python("import sys; print('out'); print('err', file=sys.stderr)"))
    assert sorted(lines) == ["err", "out"]


def test_log_shows_bytes_that_are_not_text(runtime: ContainerRuntime) -> None:
    source = r"import sys; sys.stdout.buffer.write(b'a\xff\xfeb\n\xc3\xa9\rx\n')"
    assert run(runtime, python(source))[1] == ["a\ufffd\ufffdb", "é\rx"]


def test_log_is_followed_while_the_container_runs(runtime: ContainerRuntime, shared: Mount) -> None:
    flag = in_container(runtime, shared, "go")
    source = f"import os, time\nprint('running', flush=True)\nwhile not os.path.exists({flag}): time.sleep(0.01)"
    container = runtime.start(python(source, mounts=(shared,)))
    lines = runtime.logs(container)
    assert next(lines).text == "running"
    assert runtime.wait(container, 0) is None
    (shared.source / "go").touch()
    assert list(lines) == []


def test_log_keeps_the_order_of_many_lines(runtime: ContainerRuntime) -> None:
    _, lines = run(runtime, python("for number in range(20000): print('line', number)"))
    assert lines == [f"line {number}" for number in range(20000)]


def test_log_keeps_a_long_line_whole_and_cuts_an_endless_one(runtime: ContainerRuntime) -> None:
    source = f"import sys; sys.stdout.write('a' * 100_000 + '\\n' + 'b' * {MAX_LINE_BYTES + 5} + '\\n')"
    _, lines = run(runtime, python(source))
    assert lines[0] == "a" * 100_000
    assert "".join(lines[1:]) == "b" * (MAX_LINE_BYTES + 5)
    assert len(lines) > 2
