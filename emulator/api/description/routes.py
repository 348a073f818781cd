"""Routes of the API with their parameters and answers.

``PAGES`` is the only list of the API's routes. A test compares it with the routes that the server has.
"""

from typing import Any, NamedTuple

from emulator.api import AUTHORITY_PATH, PREFIX
from emulator.api.description import answers, job_kind_answers, profile_answers

_JOB = {"region": "of the job", "name": "its TrainingJobName"}
_ACCOUNT = {"account": "12 digits; the emulator's own account if it is left out"}


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
    query: dict[str, str]
    body: Any = None
    answer: type | None = None


_LISTED = {
    "status": "InProgress, Completed, Failed, Stopping or Stopped",
    "region": "only of this one",
    "nameContains": "only those whose names contain this",
    "offset": "number of the newest ones to leave out; 0",
    "limit": "maximum number of entries; 200. The answer's total counts all that match",
}
_IMAGE = {"image": "only jobs whose image's URI contains this"}
_STEPS = {"first": "lowest global step", "last": "highest global step", "mode": "GLOBAL, TRAIN, EVAL or PREDICT"}
_TENSORS = f"{PREFIX}jobs/<region>/<name>/tensors"
PAGES = (
    Page("GET", f"{PREFIX}health", "How the emulator is doing.", {}, answer=answers.Health),
    Page("GET", AUTHORITY_PATH, "The certificates to trust, in PEM; it asks for no token.", {}),
    Page(
        "GET",
        f"{PREFIX}jobs",
        "Training jobs of all regions, newest first, with their rules' statuses and their warnings.",
        {
            **_ACCOUNT,
            "words": "only jobs whose name, region, status or rules hold all of these",
            **_IMAGE,
            **_LISTED,
            "rule": "RuleEvaluationStatus that one of the rules has",
            "descriptions": "1: with what DescribeTrainingJob says of each",
        },
        answer=answers.JobList,
    ),
    Page(
        "GET",
        f"{PREFIX}job-names",
        "Region and name of the training jobs that a short name may mean, 20 at most, and their count: the one that is "
        "called so; else those that begin so; else those that have it anywhere in their names.",
        {**_ACCOUNT, "text": "NAME or REGION/NAME, or a part of the name"},
    ),
    Page(
        "GET",
        f"{PREFIX}jobs/<region>/<name>",
        "A job: as it was asked for, as SageMaker describes it, its timeline, where its seconds went, the events sent "
        "with what their targets answered, its warnings (code, text, remedy), its rules with verdict and report, and "
        "where its inputs and outputs are.",
        _ACCOUNT,
        answer=answers.Job,
    ),
    Page(
        "POST",
        f"{PREFIX}jobs/<region>/<name>/tags",
        "Set AWS tags of a job, or remove those whose value is null; the console shows the tag note as a note.",
        _ACCOUNT,
        body={"tags": {"note": "the baseline", "of-before": None}},
        answer=answers.JobTags,
    ),
    Page("POST", f"{PREFIX}jobs/<region>/<name>/stop", "Ask a job to stop, as StopTrainingJob does.", _ACCOUNT),
    Page(
        "POST",
        f"{PREFIX}jobs/<region>/<name>/tensorboard",
        "Start the real TensorBoard on what a job writes, unless it runs: url says where. It ends with the emulator.",
        _ACCOUNT,
        answer=answers.TensorBoardAddress,
    ),
    Page(
        "POST",
        f"{PREFIX}training-jobs/<name>/interrupt",
        "Take the Spot instances from a job.",
        {"region": "of the job", "capacityAfterSeconds": "for how long there are no others"},
    ),
    Page(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/logs",
        "What a job printed, by host.",
        {
            **_ACCOUNT,
            "host": "e.g. algo-1",
            "rule": "what this rule printed instead",
            "function": "what a Lambda function printed instead",
            "requestId": "with function: only this invocation",
            "words": "only lines that hold them",
            "after": "lines from this number on; STREAM:NUMBER for one stream, and may be given of each",
            "before": "the last lines before this number",
            "limit": "at most this number of each host; 500",
        },
        answer=answers.Logs,
    ),
    Page(
        "GET",
        f"{PREFIX}processing-jobs",
        "Processing jobs of all regions, newest first, evaluations of rules included.",
        {
            **_ACCOUNT,
            "words": "only jobs whose name, region, status or training job has all of these",
            **_IMAGE,
            **_LISTED,
        },
        answer=job_kind_answers.ProcessingJobList,
    ),
    Page(
        "GET",
        f"{PREFIX}processing-jobs/<region>/<name>",
        "A processing job: its description, its inputs and outputs, and the pipeline execution that made it.",
        _ACCOUNT,
        answer=job_kind_answers.ProcessingJob,
    ),
    Page("POST", f"{PREFIX}processing-jobs/<region>/<name>/stop", "Stop a processing job.", _ACCOUNT),
    Page(
        "GET",
        f"{PREFIX}processing-jobs/<region>/<name>/logs",
        "Log lines of a processing job, by host.",
        {
            **_ACCOUNT,
            "host": "e.g. algo-1",
            "words": "only lines that contain them",
            "after": "lines from this number on; STREAM:NUMBER for one stream",
            "before": "the last lines before this number",
            "limit": "maximum number of lines of each host; 500",
        },
        answer=answers.Logs,
    ),
    Page(
        "GET",
        f"{PREFIX}tuning-jobs",
        "Hyperparameter tuning jobs of all regions, newest first, each with its best objective value.",
        {**_ACCOUNT, "words": "only jobs whose name, region, status or strategy has all of these", **_LISTED},
        answer=job_kind_answers.TuningJobList,
    ),
    Page(
        "GET",
        f"{PREFIX}tuning-jobs/<region>/<name>",
        "A tuning job: its description, and its trials with hyperparameters and objective values, oldest first.",
        _ACCOUNT,
        answer=job_kind_answers.TuningJob,
    ),
    Page("POST", f"{PREFIX}tuning-jobs/<region>/<name>/stop", "Stop a tuning job and its trials.", _ACCOUNT),
    Page(
        "GET",
        f"{PREFIX}pipeline-executions",
        "Executions of all pipelines of all regions, newest first.",
        {**_ACCOUNT, "words": "only those whose pipeline, name, id, region or status has all of these", **_LISTED},
        answer=job_kind_answers.PipelineExecutionList,
    ),
    Page(
        "GET",
        f"{PREFIX}pipeline-executions/<region>/<name>",
        "A pipeline execution, by its id: every step of the definition with its status and job, and the parameters.",
        _ACCOUNT,
        answer=job_kind_answers.PipelineExecution,
    ),
    Page(
        "POST", f"{PREFIX}pipeline-executions/<region>/<name>/stop", "Stop an execution and its steps' jobs.", _ACCOUNT
    ),
    Page(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/metrics",
        "Metrics over time, and what each host took of its processor, memory and disk.",
        _ACCOUNT,
        answer=answers.Metrics,
    ),
    Page(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/profile",
        "What a profiled job used of its machines over time (lines), its steps and phases beneath (steps, phases), "
        "statistics of both (usage, time), and which profiles of Python there are. What is measured shows at once, "
        "traces when they were uploaded.",
        {**_ACCOUNT, "points": "of each line; 400"},
        answer=profile_answers.Profile,
    ),
    Page(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/profile/flame-graph",
        "Which function took how long, below the one that called it, in profiles of Python.",
        {
            **_ACCOUNT,
            "process": "whose, as profile has it",
            "profiler": "cprofile or pyinstrument; that of the first",
            "name": "only this profile; all of the process are put together",
        },
        answer=profile_answers.FlameGraph,
    ),
    Page(
        "GET",
        _TENSORS,
        "What a job saved: steps, modes, workers, collections with their configuration, tensors.",
        _ACCOUNT,
        answer=answers.Run,
    ),
    Page(
        "GET",
        f"{_TENSORS}/series",
        "Tensors over steps, reduced to bands of lowest, highest and mean; a series for each mode and worker.",
        {
            **_ACCOUNT,
            "tensor": "a name; up to 12 times",
            "reduction": "e.g. abs_mean, for tensors of several numbers",
            **_STEPS,
            "worker": "whose; all",
            "points": "of each line; 600",
            "most": "how many steps are read, evenly chosen; 2000",
            "times": "1: with the time of each step",
        },
        answer=answers.Series,
    ),
    Page(
        "GET",
        f"{_TENSORS}/histogram",
        "How a tensor's values are spread over steps.",
        {
            **_ACCOUNT,
            "tensor": "a name",
            "scale": "magnitude (exponents of ten) or value",
            "bins": "48",
            "columns": "80",
            "mode": _STEPS["mode"],
        },
        answer=answers.Histogram,
    ),
    Page(
        "GET",
        f"{_TENSORS}/heat-map",
        "A reduction of many tensors over steps, a row a tensor, in the order of the model.",
        {
            **_ACCOUNT,
            "collection": "of whose tensors",
            "regex": "or: found in their names",
            "reduction": "abs_mean",
            "columns": "120",
            "mode": _STEPS["mode"],
        },
        answer=answers.HeatMap,
    ),
    Page(
        "GET",
        f"{_TENSORS}/values",
        "A tensor at a step: statistics, and a part of its numbers.",
        {
            **_ACCOUNT,
            "tensor": "a name",
            "step": "a global step; the last",
            "index": "of the dimensions before the last two",
        },
        answer=answers.Values,
    ),
    Page(
        "GET",
        f"{_TENSORS}/confusion",
        "How often each label was predicted as each class.",
        {**_ACCOUNT, "labels": "a tensor's name", "predictions": "a tensor's name", "step": "a global step; the last"},
        answer=answers.Confusion,
    ),
    Page(
        "POST",
        f"{PREFIX}jobs/<region>/<name>/rules/<rule>/retry",
        "Judge an ended job again with other parameters; nothing of the job changes.",
        _ACCOUNT,
        {"parameters": {"threshold": "0.01"}},
        answer=answers.Retry,
    ),
    Page(
        "GET",
        f"{PREFIX}jobs/<region>/<name>/record",
        "All that is known of a job that ended, for export; its objects are in S3, where uris says.",
        _ACCOUNT,
    ),
    Page("POST", f"{PREFIX}records", "Take such a record, as import does.", _ACCOUNT, {"job": {}, "evaluations": []}),
    Page("GET", f"{PREFIX}s3", "The buckets.", _ACCOUNT, answer=answers.BucketList),
    Page(
        "GET",
        f"{PREFIX}s3/<bucket>",
        "Folders and objects below a prefix.",
        {**_ACCOUNT, "prefix": "of the keys", "after": "of the last answer", "limit": "200"},
        answer=answers.Level,
    ),
    Page(
        "GET",
        f"{PREFIX}s3/<bucket>/object",
        "An object, under a policy that lets nothing in it run.",
        {
            **_ACCOUNT,
            "key": "its key",
            "limit": "only its first bytes",
            "download": "as a file",
            "modified": "any text: a browser shows the object anew where it differs",
        },
    ),
    Page(
        "GET",
        f"{PREFIX}s3/<bucket>/archive",
        "What a tar archive holds.",
        {**_ACCOUNT, "key": "its key"},
        answer=answers.Archive,
    ),
    Page(
        "GET",
        f"{PREFIX}events",
        "What was sent, oldest first, with what targets answered.",
        {**_ACCOUNT, "after": "a sequence number", "limit": "number of the newest; 100", "job": "only of this one"},
        answer=answers.EventList,
    ),
    Page(
        "GET",
        f"{PREFIX}stream",
        "Server-sent events: hello, change (jobs that changed), progress (of the job that is watched). Last-Event-ID "
        "resumes, also after a restart of the emulator.",
        {**_ACCOUNT, "job": "REGION/NAME that is watched", "lastEventId": "as the header of this name"},
    ),
    Page(
        "GET",
        f"{PREFIX}reset",
        "How many jobs, jobs that run, buckets and objects a reset would forget, and 1 for otherData if there is any.",
        {},
    ),
    Page(
        "POST",
        f"{PREFIX}reset",
        "Stop and forget jobs, or everything.",
        {"jobNamePrefix": "only jobs that begin so", "keep": "1: keep everything for a day, to be brought back"},
    ),
    Page("POST", f"{PREFIX}reset/undo", "Bring back what was kept last, as an import of the state does.", {}),
    Page(
        "POST",
        f"{PREFIX}prune",
        "Remove what ended jobs left: folders, logs, containers. Without a bound, all of it.",
        {"olderThanSeconds": "what is older", "keepBytes": "all but so much, the newest", "dryRun": "1: only tell"},
    ),
    Page("GET", f"{PREFIX}faults", "What fails on purpose, and how often it has.", {}),
    Page(
        "PUT",
        f"{PREFIX}faults",
        "Let requests, deliveries, invocations or jobs fail, in the place of what failed before.",
        {},
        {"s3": {"error": 0.1, "delay": "200ms"}, "jobs": {"capacity": 0.5, "times": 3}},
    ),
    Page("DELETE", f"{PREFIX}faults", "Let nothing fail any more.", {}),
    Page("GET", f"{PREFIX}state", "The whole state as one archive.", {}),
    Page("POST", f"{PREFIX}state", "Take the state from such an archive, which is the body.", {}),
)
