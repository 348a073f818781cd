"""Log lines of a benchmark's job."""

from typing import Any

LOG_GROUP = "/aws/sagemaker/TrainingJobs"


def find_line(logs: Any, job_name: str, word: str) -> str:
    """Return the first line of a job's log that begins with ``word``.

    Raises:
        LookupError: there is no such line.
    """
    streams = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{job_name}/")["logStreams"]
    for stream in streams:
        events = logs.get_log_events(
            logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"], startFromHead=True, limit=10_000
        )["events"]
        for event in events:
            if event["message"].startswith(word):
                return str(event["message"])
    raise LookupError(f"the log of {job_name} has no line that begins with {word!r}")
