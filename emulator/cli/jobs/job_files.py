"""The ``open``, ``report``, ``export`` and ``import`` commands.

They show a job in the browser, write it into one file or a folder, and read it from there.
"""

import base64
import hashlib
import json
import webbrowser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from emulator.cli.jobs.jobs import Job, find_job, name_argument
from emulator.cli.own_api import ask, locate_job
from emulator.cli.running import Emulator, check_new, connect, emulator_option, fail, overwrite_option
from emulator.cli.tables import count_of
from emulator.console import BUILT, CONSOLE

# What a report holds at most: a page with more would not open quickly.
_MOST_TENSORS, _MOST_PICTURES = 300, 40
_IMPORTANCE = "feature_importance/"
_FORMAT = 1
MANIFEST = "job.json"
"""A file of every folder that export writes."""


@click.command("open")
@emulator_option
@click.argument("name", required=False)
@click.option("--print", "only_print", is_flag=True, help="Only print the address.")
def open_console(state_dir: Path | None, name: str | None, *, only_print: bool) -> None:
    """Open the console in a browser; with NAME, at that job."""
    emulator = connect(state_dir)
    address = f"{emulator.record.endpoint_url}{CONSOLE}"
    if emulator.record.token is not None:
        address += f"?token={emulator.record.token}"
    if name is not None:
        address += f"#/{find_job(emulator, name).path}"
    click.echo(address)
    if not only_print and not webbrowser.open(address):
        click.echo("No browser could be opened: open the address yourself.", err=True)


@click.command()
@emulator_option
@name_argument
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write  [default: JOB.html].",
)
@overwrite_option
def report(state_dir: Path | None, name: str, output: Path | None, *, overwrite: bool) -> None:
    """Write a job's console page to one HTML file.

    You can open the file without the emulator.
    """
    job = find_job(connect(state_dir), name)
    target = output or Path(f"{job.name}.html")
    check_new(target, overwrite=overwrite)
    try:
        names = json.loads((BUILT / "names.json").read_text())
    except FileNotFoundError:
        fail("The report needs the console, which is not built: run make console.")
    script, style = ((BUILT / names[each]).read_text() for each in ("script", "style"))
    answers = _collect_answers(job)
    try:
        target.write_text(render_report(job.region, job.name, script, style, answers), encoding="utf-8")
    except OSError as error:
        fail(f"{target} cannot be written: {error.strerror}")
    click.echo(f"Wrote {target} ({target.stat().st_size / 1e6:.1f} MB)")


class _Recorder:
    """Asks as the page does, and keeps each answer under its address as the page writes it."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.answers: dict[str, Any] = {}

    def ask(self, path: str, *query: tuple[str, str], besides: Iterable[tuple[str, str]] = ()) -> Any:
        """Ask, and keep the answer unless there is none; ``besides`` is asked with, and no part of the address."""
        given = [(name, value) for name, value in query if value]
        found = ask(self._emulator, path, [*given, *besides], may_be_missing=True)
        if found is not None:
            self.answers[f"{path}?{urlencode(sorted(given))}"] = found
        return found


def _collect_answers(job: Job) -> dict[str, Any]:
    """Return what the page asks for of a job, by address."""
    recorder, path = _Recorder(job.emulator), job.path
    described = recorder.ask(path)
    recorder.ask(f"{path}/metrics")
    for rule in ("", *(each["name"] for each in described["rules"])):
        recorder.ask(f"{path}/logs", ("limit", "500"), ("rule", rule))
    deliveries = [delivery for event in described["events"] for delivery in event["deliveries"]]
    for each in deliveries:
        if each["function"]:
            recorder.ask(f"{path}/logs", ("function", each["function"]), ("requestId", each["request_id"]))
    profile = recorder.ask(f"{path}/profile")
    python = (profile or {}).get("pythonProfiles", ())
    for process, profiler in sorted({(each["process"], each["profiler"]) for each in python}):
        recorder.ask(f"{path}/profile/flame-graph", ("process", process), ("profiler", profiler))
    run = recorder.ask(f"{path}/tensors")
    if run is not None:
        _collect_tensors(recorder, f"{path}/tensors", run)
    return recorder.answers


def _collect_tensors(recorder: _Recorder, path: str, run: dict[str, Any]) -> None:
    names = [each["name"] for each in run["tensors"]][:_MOST_TENSORS]
    closely = [("points", "800"), ("most", "1000")]
    for name in names:
        for reduction in ("", "abs_mean"):
            recorder.ask(f"{path}/series", ("tensor", name), ("reduction", reduction), besides=closely)
    for collection in run["collections"]:
        recorder.ask(f"{path}/heat-map", ("collection", collection["name"]))
    found = [each["name"] for each in run["tensors"] if each["name"].startswith(_IMPORTANCE)]
    for kind in {name.split("/")[1] for name in found}:
        recorder.ask(f"{path}/heat-map", ("regex", f"^{_IMPORTANCE}{kind}/"), ("reduction", "mean"))
    of_classes = {each["name"]: each["tensors"] for each in run["collections"]}
    if of_classes.get("labels") and of_classes.get("predictions"):
        pair = (("labels", of_classes["labels"][0]), ("predictions", of_classes["predictions"][0]))
        recorder.ask(f"{path}/confusion", *pair)
    for name in names[:_MOST_PICTURES]:
        recorder.ask(f"{path}/histogram", ("tensor", name), ("scale", "magnitude"))
        recorder.ask(f"{path}/values", ("tensor", name))


def render_report(region: str, name: str, script: str, style: str, answers: dict[str, Any]) -> str:
    """Put the page, and the answers that it asks for, into one document.

    Nothing but this script runs in it, and nothing is loaded: what jobs printed cannot end the element that it is in.
    """
    content = json.dumps({"job": f"{region}/{name}", "answers": answers}).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = name.replace("&", "&amp;").replace("<", "&lt;")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{title}</title><style>{style}</style></head><body><div id="app"></div>'
        f'<script type="application/json" id="report">{content}</script><script type="module">{script}</script>'
        "</body></html>\n"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@click.command("export")
@emulator_option
@name_argument
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write  [default: JOB].",
)
def export_job(state_dir: Path | None, name: str, output: Path | None) -> None:
    """Write an ended job to a folder.

    The folder has the job's tensors and other outputs, logs, configuration and events. ``import`` loads it into this or
    another emulator.
    """
    job = find_job(connect(state_dir), name)
    folder = output or Path(job.name)
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is a file: give a folder with --output.")
    if folder.exists() and any(folder.iterdir()):
        fail(f"{folder} already exists and is not empty: give another folder with --output.")
    record = ask(job.emulator, f"{job.path}/record", may_be_missing=True)
    if record is None:
        fail(f"{job.name} has not ended yet: wait for its end, then export it.")
    try:
        objects = _write_job(job, record, folder)
    except OSError as error:
        fail(f"{folder} cannot be written: {error.strerror}")
    click.echo(
        f"Wrote {folder}: {count_of(objects, 'object')}, {count_of(len(record['logs']), 'log')}, "
        f"{count_of(len(record['events']), 'event')}"
    )


def _write_job(job: Job, record: Mapping[str, Any], folder: Path) -> int:
    """Write a job's record and objects into a folder, and return the number of objects."""
    folder.mkdir(parents=True, exist_ok=True)
    objects = 0
    s3 = job.emulator.client("s3", job.region)
    for uri in record["uris"]:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        try:
            objects += _download(s3, bucket, f"{prefix.rstrip('/')}/", folder / "objects")
        except s3.exceptions.NoSuchBucket:
            click.echo(f"{uri} is not exported: its bucket was deleted.", err=True)
    for stream in record["logs"]:
        target = folder / "logs" / f"{stream['stream'].replace('/', ' ')}.log"
        target.parent.mkdir(exist_ok=True)
        target.write_text("".join(f"{line[1]}\n" for line in stream["lines"]), encoding="utf-8", errors="replace")
    (folder / "events.json").write_text(json.dumps(record["events"], indent=1))
    (folder / "request.json").write_text(json.dumps(record["job"]["request"], indent=1))
    (folder / MANIFEST).write_text(json.dumps({"format": _FORMAT, **record}, indent=1))
    return objects


def _download(s3: Any, bucket: str, prefix: str, folder: Path) -> int:
    count = 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            target = (folder / bucket / found["Key"]).resolve()
            if found["Key"].endswith("/") or not target.is_relative_to(folder.resolve()):
                click.echo(f"s3://{bucket}/{found['Key']} cannot be stored as a local file and is skipped.", err=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(bucket, found["Key"], str(target))
            count += 1
    return count


@click.command("import")
@emulator_option
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def import_job(state_dir: Path | None, folder: Path) -> None:
    """Load a job that export wrote to FOLDER.

    This includes its tensors, logs and events.
    """
    emulator = connect(state_dir)
    try:
        record = json.loads((folder / MANIFEST).read_text())
        # Looked at first: another version may have written the rest in another way.
        if (written := record["format"]) != _FORMAT:
            fail(f"{folder} was written by another version (format {written}, not {_FORMAT}): export it again.")
        region, name = record["job"]["region"], record["job"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        fail(f"{folder} is not an exported job: it has no readable {MANIFEST}. smdebug-emulator export writes one.")
    if ask(emulator, locate_job(region, name), may_be_missing=True) is not None:
        fail(
            f"A job {name} already exists in {region}: import it into another emulator (start --state-dir), or first "
            f"delete all jobs whose names begin with it (reset --job-name-prefix {name})."
        )
    ask(emulator, "records", method="POST", body=record)
    from boto3.exceptions import S3UploadFailedError  # as late as boto3 itself, which takes a while

    s3 = emulator.client("s3", region)
    known = {each["Name"] for each in s3.list_buckets()["Buckets"]}
    # As S3 has it: a region is named, unless it is us-east-1.
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    root = folder / "objects"
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        bucket, _, key = path.relative_to(root).as_posix().partition("/")
        try:
            if bucket not in known:
                s3.create_bucket(Bucket=bucket, **place)
                known.add(bucket)
            s3.upload_file(str(path), bucket, key)
        except (s3.exceptions.ClientError, S3UploadFailedError, OSError) as error:
            fail(
                f"{name} is imported without {path} and the files after it ({error}): run smdebug-emulator reset "
                f"--job-name-prefix {name}, and import it again."
            )
    click.echo(f"Imported {name}. See it with: smdebug-emulator open {name}")
