"""Routes of the API with their parameters and answers.

``PAGES`` is the only list of the API's routes. A test compares it with the routes that the server has.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from emulator.api import AUTHORITY_PATH, PREFIX
from emulator.api.description import answers, job_kind_answers, profile_answers

_ACCOUNT = {"account": "account number, 12 digits; default: the emulator's own account"}


class Page(NamedTuple):
    """One route of the API.

    Attributes:
        path: the path, with ``<name>`` for each variable part.
        summary: what the response contains.
        query: the descriptions of the query parameters, by name.
        body: an example of the request's JSON body.
        answer: the typed dictionary of the JSON response. None if the response is not described.
    """

    method: str
    path: str
    summary: str
    query: Mapping[str, str] = MappingProxyType({})
    body: Any = None
    answer: type | None = None


def _of_account(
    method: str,
    path: str,
    summary: str,
    query: Mapping[str, str] = MappingProxyType({}),
    body: Any = None,
    answer: type | None = None,
) -> Page:
    """Describe a route about one account, which the query may name."""
    return Page(method, path, summary, {**_ACCOUNT, **query}, body, answer)


_LISTED = {
    "status": "InProgress, Completed, Failed, Stopping or Stopped",
    "region": "only this region",
    "nameContains": "only entries whose names contain this text",
    "offset": "number of newest entries to skip; default: 0",
    "limit": "maximum number of entries; default: 200. total in the answer counts all that match",
}
_IMAGE = {"image": "only jobs whose image URI contains this text"}
_STEPS = {
    "first": "first global step",
    "last": "last global step",
    "mode": "only steps of this mode: TRAIN, EVAL or PREDICT; default: GLOBAL, all steps",
}
_LOG_LINES = {
    "words": "only lines that contain this text",
    "after": "number of the first line; STREAM:NUMBER for one stream, once per stream. Default: the last lines",
    "before": "the last lines before the line of this number; STREAM:NUMBER for one stream, once per stream",
    "limit": "maximum number of lines per host; default: 500",
}
_TENSORS = f"{PREFIX}jobs/<region>/<name>/tensors"
PAGES = (
    Page(
        "GET",
        f"{PREFIX}health",
        "State of the emulator: version, addresses, runtime, running jobs, undelivered events.",
        answer=answers.Health,
    ),
    Page("GET", AUTHORITY_PATH, "The emulator's CA certificates in PEM, for clients to trust. Needs no token."),
    _of_account(
        "GET",
        f"{PREFIX}jobs",
        "Training jobs of all regions, newest first, with the statuses of their rules and their warnings.",
        {
            "words": "only jobs that have each of these words in name, region, status or rules",
            **_IMAGE,
            **_LISTED,
            "rule": "only jobs that have a rule with this RuleEvaluationStatus",
            "descriptions": "1: add the answer of DescribeTrainingJob to each job",
        },
        answer=answers.JobList,
    ),
    _of_account(
        "GET",
        f"{PREFIX}job-names",
        "Training jobs that a shortened name may refer to: those of exactly this name; if there are none, those whose "
        "names begin with it; if there are none, those whose names contain it. Region and name of at most 20 jobs, and "
        "the count of all.",
        {"text": "NAME or REGION/NAME, where NAME may be a part of the job's name"},
    ),
    _of_account(
        "GET",
        f"{PREFIX}jobs/<region>/<name>",
        "A training job: its request and its description by DescribeTrainingJob, its timeline, the seconds of each "
        "phase, its events with the answers of their targets, its warnings (code, text, remedy), its rules with "
        "verdict and report, and links to its inputs and outputs.",
        answer=answers.Job,
    ),
    _of_account(
        "POST",
        f"{PREFIX}jobs/<region>/<name>/tags",
        "Set AWS tags of a training job; a null value removes the tag. The console shows the tag "
        "note as the job's note.",
        body={"tags": {"note": "the baseline", "old-tag": None}},
        answer=answers.JobTags,
    ),
    _of_account("POST", f"{PREFIX}jobs/<region>/<name>/stop", "Stop a training job, as StopTrainingJob does."),
    _of_account(
        "POST",
        f"{PREFIX}jobs/<region>/<name>/tensorboard",
        "Start TensorBoard on the output of a training job, unless it already runs, and return its URL. It stops with "
        "the emulator.",
        answer=answers.TensorBoardAddress,
    ),
    Page(
        "POST",
        f"{PREFIX}training-jobs/<name>/interrupt",
        "Interrupt a training job on Spot instances.",
        {
            "region": "the job's region; default: the emulator's",
            "capacityAfterSeconds": "seconds until new instances are available; default: 0",
        },
    ),
    _of_account(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/logs",
        "Log lines of a training job, by host.",
        {
            "host": "only this host, such as algo-1",
            "rule": "the log of this rule instead of the job's",
            "function": "the log of this Lambda function instead of the job's",
            "requestId": "with function: only the lines of this invocation",
            **_LOG_LINES,
        },
        answer=answers.Logs,
    ),
    _of_account(
        "GET",
        f"{PREFIX}processing-jobs",
        "Processing jobs of all regions, newest first, including those that evaluate rules.",
        {
            "words": "only jobs that have each of these words in name, region, status or training job",
            **_IMAGE,
            **_LISTED,
        },
        answer=job_kind_answers.ProcessingJobList,
    ),
    _of_account(
        "GET",
        f"{PREFIX}processing-jobs/<region>/<name>",
        "A processing job: its description, links to its inputs and outputs, and its pipeline execution if it has one.",
        answer=job_kind_answers.ProcessingJob,
    ),
    _of_account("POST", f"{PREFIX}processing-jobs/<region>/<name>/stop", "Stop a processing job."),
    _of_account(
        "GET",
        f"{PREFIX}processing-jobs/<region>/<name>/logs",
        "Log lines of a processing job, by host.",
        {
            "host": "only this host, such as algo-1",
            **_LOG_LINES,
        },
        answer=answers.Logs,
    ),
    _of_account(
        "GET",
        f"{PREFIX}tuning-jobs",
        "Hyperparameter tuning jobs of all regions, newest first, each with its best objective value.",
        {
            "words": "only jobs that have each of these words in name, region, status or strategy",
            **_LISTED,
        },
        answer=job_kind_answers.TuningJobList,
    ),
    _of_account(
        "GET",
        f"{PREFIX}tuning-jobs/<region>/<name>",
        "A tuning job: its description, and its trials with hyperparameters and objective values, oldest first.",
        answer=job_kind_answers.TuningJob,
    ),
    _of_account("POST", f"{PREFIX}tuning-jobs/<region>/<name>/stop", "Stop a tuning job and its trials."),
    _of_account(
        "GET",
        f"{PREFIX}pipeline-executions",
        "Pipeline executions of all regions, newest first.",
        {
            "words": "only executions that have each of these words in pipeline, name, id, region or status",
            **_LISTED,
        },
        answer=job_kind_answers.PipelineExecutionList,
    ),
    _of_account(
        "GET",
        f"{PREFIX}pipeline-executions/<region>/<name>",
        "A pipeline execution, by its id: its parameters, and each step of the definition with status and job.",
        answer=job_kind_answers.PipelineExecution,
    ),
    _of_account(
        "POST",
        f"{PREFIX}pipeline-executions/<region>/<name>/stop",
        "Stop a pipeline execution and the jobs of its steps.",
    ),
    _of_account(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/metrics",
        "Metrics of a training job over time, and each host's use of CPU, memory and disk.",
        answer=answers.Metrics,
    ),
    _of_account(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/profile",
        "Profile of a training job: use of resources over time (lines), durations of its steps and phases (steps, "
        "phases), statistics of both (usage, time), and the list of its Python profiles. Resource metrics are there at "
        "once, traces after their upload.",
        {"points": "number of points per line; default: 400"},
        answer=profile_answers.Profile,
    ),
    _of_account(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/profile/flame-graph",
        "Time of each function in the Python profiles of a training job, as a tree of calls.",
        {
            "process": "only this process, named as in pythonProfiles of /profile; default: all",
            "profiler": "cprofile or pyinstrument; default: that of the first profile",
            "name": "only the profile of this name; default: the sum of all",
        },
        answer=profile_answers.FlameGraph,
    ),
    _of_account(
        "GET",
        _TENSORS,
        "What a training job saved: steps, modes, workers, collections with their configuration, tensors.",
        answer=answers.Run,
    ),
    _of_account(
        "GET",
        f"{_TENSORS}/series",
        "Minimum, maximum and mean of tensors over intervals of steps, as one series per mode and worker.",
        {
            "tensor": "name of a tensor; may be given up to 12 times",
            "reduction": "reduction such as abs_mean; required for tensors of more than one number",
            **_STEPS,
            "worker": "only this worker; default: all",
            "points": "number of intervals; default: 600",
            "most": "maximum number of steps to read, evenly spaced; default: 2000",
            "times": "1: add the time at which each step was saved",
        },
        answer=answers.Series,
    ),
    _of_account(
        "GET",
        f"{_TENSORS}/histogram",
        "Histograms of a tensor's values over steps.",
        {
            "tensor": "name of the tensor",
            "scale": "magnitude (decimal exponents of the absolute values) or value; default: magnitude",
            "bins": "number of bins; default: 48",
            "columns": "maximum number of steps; default: 80",
            "mode": _STEPS["mode"],
        },
        answer=answers.Histogram,
    ),
    _of_account(
        "GET",
        f"{_TENSORS}/heat-map",
        "A reduction of many tensors over steps, one row per tensor, in the order of the model.",
        {
            "collection": "the tensors of this collection",
            "regex": "instead of collection: tensors whose names match this regular expression",
            "reduction": "the reduction; default: abs_mean",
            "columns": "maximum number of steps; default: 120",
            "mode": _STEPS["mode"],
        },
        answer=answers.HeatMap,
    ),
    _of_account(
        "GET",
        f"{_TENSORS}/values",
        "A tensor at a step: statistics, and some of its numbers.",
        {
            "tensor": "name of the tensor",
            "step": "global step; default: the last at which the tensor was saved",
            "index": "index into the dimensions before the last two, such as 0,3; default: zeros",
        },
        answer=answers.Values,
    ),
    _of_account(
        "GET",
        f"{_TENSORS}/confusion",
        "Confusion matrix: how often each label was predicted as each class.",
        {
            "labels": "name of the tensor of labels",
            "predictions": "name of the tensor of predictions",
            "step": "global step; default: the last at which the labels were saved",
        },
        answer=answers.Confusion,
    ),
    _of_account(
        "POST",
        f"{PREFIX}jobs/<region>/<name>/rules/<rule>/retry",
        "Evaluate a rule of an ended training job again with other parameters. The job itself does not change.",
        body={"parameters": {"threshold": "0.01"}},
        answer=answers.Retry,
    ),
    _of_account(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/record",
        "The record of an ended training job, for export: its data except its S3 objects, whose locations are in uris.",
    ),
    _of_account(
        "POST", f"{PREFIX}records", "Import the record of a training job.", body={"job": {}, "evaluations": []}
    ),
    _of_account("GET", f"{PREFIX}s3", "Names of the buckets.", answer=answers.BucketList),
    _of_account(
        "GET",
        f"{PREFIX}s3/<bucket>",
        "Folders and objects of a bucket below a prefix.",
        {
            "prefix": "prefix of the keys",
            "after": "value of after in the previous answer, to continue it",
            "limit": "maximum number of entries; default: 200",
        },
        answer=answers.Level,
    ),
    _of_account(
        "GET",
        f"{PREFIX}s3/<bucket>/object",
        "The content of an object. A Content-Security-Policy keeps scripts in it from running.",
        {
            "key": "key of the object",
            "limit": "maximum number of bytes, from the start of the object",
            "download": "any value: as a file to download",
            "modified": "any text; has no effect other than to keep a browser from showing a cached version",
        },
    ),
    _of_account(
        "GET",
        f"{PREFIX}s3/<bucket>/archive",
        "Members of an object that is a tar archive.",
        {"key": "key of the object"},
        answer=answers.Archive,
    ),
    _of_account(
        "GET",
        f"{PREFIX}events",
        "Sent events, oldest first, with the answers of their targets.",
        {
            "after": "only events after this sequence number",
            "limit": "maximum number of events, the newest; default: 100",
            "job": "only events of this job; may be given several times",
        },
        answer=answers.EventList,
    ),
    _of_account(
        "GET",
        f"{PREFIX}stream",
        "Server-sent events: hello (load everything), change (names of the jobs that changed) and progress (state of "
        "the watched job). The header Last-Event-ID resumes the stream, also after a restart of the emulator.",
        {"job": "REGION/NAME of the job to watch", "lastEventId": "instead of the header Last-Event-ID"},
    ),
    Page(
        "GET",
        f"{PREFIX}reset",
        "What a full reset would delete: the number of jobs, running jobs, buckets and objects; otherData is 1 if "
        "there is any other data, else 0.",
    ),
    Page(
        "POST",
        f"{PREFIX}reset",
        "Stop and delete all jobs, and delete all other data.",
        {
            "jobNamePrefix": "delete only the jobs whose names begin with this text, and no other data",
            "keep": "1: keep a copy of the deleted data for a day, for /reset/undo",
        },
    ),
    Page("POST", f"{PREFIX}reset/undo", "Restore the copy that the last reset kept."),
    Page(
        "POST",
        f"{PREFIX}prune",
        "Remove the folders, logs and containers of ended jobs: all of them, or those that a bound selects.",
        {
            "olderThanSeconds": "remove only what is older than this",
            "keepBytes": "keep this many bytes of the newest, and remove the rest",
            "dryRun": "1: only list what would be removed",
        },
    ),
    Page("GET", f"{PREFIX}faults", "The injected faults, and how often each has occurred."),
    Page(
        "PUT",
        f"{PREFIX}faults",
        "Inject faults into requests, event deliveries, Lambda invocations or jobs. Replaces all previous faults.",
        body={"s3": {"error": 0.1, "delay": "200ms"}, "jobs": {"capacity": 0.5, "times": 3}},
    ),
    Page("DELETE", f"{PREFIX}faults", "Remove all injected faults."),
    Page("GET", f"{PREFIX}state", "Export the whole state as a tar archive. No job may be running."),
    Page(
        "POST",
        f"{PREFIX}state",
        "Replace the whole state with that of an exported archive, the request's body. No job may be running.",
    ),
)
