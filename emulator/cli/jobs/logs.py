"""The ``logs`` command."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from emulator.api.jobs.short_names import choose_named
from emulator.cli.jobs.jobs import NO_SUCH_JOB, Job, find_job, name_argument, refuse_several
from emulator.cli.own_api import ask
from emulator.cli.running import connect, emulator_option, fail, json_option

_FOLLOW_SECONDS = 0.5
# As many as the API gives at once.
_MOST_LINES = 5000
_UNDER_WAY = ("InProgress", "Stopping")  # of a job or a rule


@click.command()
@emulator_option
@name_argument
@click.option("--rule", metavar="NAME", help="Show the log of this rule instead of the training log.")
@click.option("--tail", "-n", type=click.IntRange(0), help="Show only this many of the last lines of each host.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines until the job or the rule has ended.")
@json_option
def logs(state_dir: Path | None, name: str, rule: str | None, tail: int | None, *, follow: bool, as_json: bool) -> None:
    """Show the log of a training job, or of one of its rules.

    With --tail and --follow, the last lines are shown, then new ones. The exit code is 3 if no job or rule matches, or
    its log is empty.
    """
    job = find_job(connect(state_dir), name)
    rule = None if rule is None else _find_rule(job, rule)
    read = {} if tail is None else _skip_to_tail(job, rule, tail)
    try:
        while True:
            status = _ask_status(job, rule)
            for stream, host, line in _read_new_lines(job, rule, read):
                if as_json:
                    content = {"stream": stream, "timestamp": line["timeMs"], "message": line["message"]}
                    click.echo(json.dumps(content))
                else:
                    click.echo(f"{f'{host}  ' if len(read) > 1 else ''}{line['message']}")
            if not follow or status not in _UNDER_WAY:
                break
            time.sleep(_FOLLOW_SECONDS)
    except KeyboardInterrupt:
        return
    if not any(read.values()):
        fail(_explain_no_line(job.name, rule, status, has_stream=bool(read)), NO_SUCH_JOB)


def _skip_to_tail(job: Job, rule: str | None, tail: int) -> dict[str, int]:
    """Return how many lines of each stream come before its last ``tail``."""
    streams = ask(job.emulator, f"{job.path}/logs", [("limit", 1), ("rule", rule)])["streams"]
    return {each["stream"]: max(0, each["total"] - tail) for each in streams}


def _find_rule(job: Job, name: str) -> str:
    """Return the whole name of a job's rule; short names mean what those of jobs do."""
    known = [str(each["name"]) for each in job.described["rules"]]
    found = choose_named(name, known, str)
    if not found:
        fail(f"{job.name} has no rule {name}: its rules are {', '.join(known) or 'none'}.", NO_SUCH_JOB)
    if len(found) > 1:
        refuse_several(name, f"rules of {job.name}", found, len(found))
    return found[0]


def _ask_status(job: Job, rule: str | None) -> str:
    described = ask(job.emulator, job.path)
    of_rules = {each["name"]: each["status"] for each in described["rules"]}
    return str(described["status"] if rule is None else of_rules[rule])


def _explain_no_line(job: str, rule: str | None, status: str, *, has_stream: bool) -> str:
    what = job if rule is None else f"Rule {rule} of {job}"
    if status in _UNDER_WAY:
        return f"{what} has no log yet, its status is {status}: add --follow to print lines as they come."
    if has_stream:
        return f"{what} printed nothing: smdebug-emulator describe {job} says how it ended."
    return (
        f"{what} has no log: its containers did not start (smdebug-emulator describe {job} says why), or prune or "
        "start --retention removed it."
    )


def _read_new_lines(job: Job, rule: str | None, read: dict[str, int]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the lines that came since the last call, with stream and host; ``read`` counts each stream's."""
    more = True
    while more:
        after = [("after", 0), *(("after", f"{stream}:{count}") for stream, count in read.items())]
        query = [("limit", _MOST_LINES), *after, ("rule", rule)]
        streams = ask(job.emulator, f"{job.path}/logs", query)["streams"]
        before = dict(read)
        # All of them are known before the first line is shown: whether hosts are named is said by their number.
        read.update({each["stream"]: read.get(each["stream"], 0) + len(each["lines"]) for each in streams})
        yield from ((each["stream"], each["host"], line) for each in streams for line in each["lines"])
        more = read != before
