"""Soak: jobs, keys and archives with hostile paths, all confined.

Nothing outside their folders is read into S3, or written.
"""

import gzip
import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from emulator.stop_handler.deployment import DEFAULT_NAME
from tests.soak.course import Course
from tests.soak.small_job import BUCKET, build_job
from tests.soak.stage import Stage

LONG, SHORT = 200, 2
RUNTIMES = ("process", "docker")
SECRET = b"what nobody outside may read"
_PLACES = (
    *("model", "output", "output/data", "output/tensors", "output/tensors/index", "output/tensors/events"),
    *("output/failure", "output/tensorboard", "checkpoints", "output/metrics/sagemaker"),
)
_WAYS = ("symlink", "hard link", "link inside", "link up", "pipe", "socket", "link to a link")
# Replaces a place of its /opt/ml by something that leads out of it, to a folder or a file, and ends in some way.
_SCRIPT = """
import os, pathlib, shutil, socket, sys
given = json.loads(given["hostile"])
place, target = base / given["place"], pathlib.Path(given["target"])
print("hostile", given, flush=True)
def clear(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        for each in path.iterdir():
            clear(each)
        try:
            path.rmdir()
        except OSError as error:
            print(error)
try:
    way = given["way"]
    if way == "link inside":
        place.mkdir(parents=True, exist_ok=True)
        (place / "inside").symlink_to(target)
    elif way == "link up":
        place.mkdir(parents=True, exist_ok=True)
        (place / "up").symlink_to("../" * 12 + str(target)[1:])
    else:
        clear(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        if way == "hard link":
            os.link(target / "secret", place)
        elif way == "pipe":
            os.mkfifo(place)
        elif way == "socket":
            socket.socket(socket.AF_UNIX).bind(str(place))
        elif way == "link to a link":
            (base / "first").symlink_to(target)
            place.symlink_to(base / "first")
        else:
            place.symlink_to(target / "secret" if given["place"] == "output/failure" else target)
except OSError as error:
    print("could not:", error, flush=True)
sys.exit(given["code"])
"""


def run(course: Course) -> None:
    """Try one hostile input in each round."""
    outside = course.folder / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    course.folder.chmod(0o755)
    with Stage(course) as stage:
        before = _list_outside(course)
        tried: dict[str, int] = {}
        for seed, random in course.draw_rounds():
            attack = random.choice((_attack_with_links, _attack_with_links, _attack_with_keys, _attack_with_zip))
            with course.noting(seed):
                attack(stage, seed, random, outside)
                name = attack.__name__.removeprefix("_attack_with_")
                tried[name] = tried.get(name, 0) + 1
                if _holds_secret(stage):
                    course.fail(seed, f"{name}: what is outside came into S3")
                if (now := _list_outside(course)) != before or (outside / "secret").read_bytes() != SECRET:
                    course.fail(seed, f"{name}: outside there is now {now}, and was {before}")
            course.figures["tried"] = ", ".join(f"{each} {count}" for each, count in sorted(tried.items()))


def _attack_with_links(stage: Stage, seed: int, random: Random, outside: Path) -> None:
    name = f"links-{seed}"
    hostile = {
        "place": random.choice(_PLACES),
        "target": str(outside),
        "way": random.choice(_WAYS),
        "code": random.choice((0, 1)),
    }
    job = _run(
        stage,
        name,
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/output/{name}/checkpoints"},
        TensorBoardOutputConfig={"S3OutputPath": f"s3://{BUCKET}/output/{name}/tensorboard"},
        HyperParameters={"script": json.dumps(_SCRIPT), "hostile": json.dumps(json.dumps(hostile))},
    )
    if SECRET.decode() in str(job):
        raise AssertionError(f"{hostile}: {job['FailureReason']}")


def _attack_with_keys(stage: Stage, seed: int, random: Random, outside: Path) -> None:
    """Keys that, as paths below a channel's or the checkpoints' folder, would lead out of it."""
    name, s3 = f"keys-{seed}", stage.client("s3")
    up = "../" * random.randrange(1, 12)
    for key in (
        f"{up}evil",
        f"a/{up}evil",
        f"/{outside}/evil",
        f"{up}{outside}/evil",
        "..",
        "a/..",
        "./evil",
        "a//evil",
    ):
        try:
            s3.put_object(Bucket=BUCKET, Key=f"{name}/{key}", Body=b"evil")
        except ClientError:
            continue
    channel = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{name}/"}
    members: dict[str, Any] = {"InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": channel}}]}
    if random.random() < 0.5:
        members = {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/{name}"}}
    elif random.random() < 0.5:
        members["InputDataConfig"][0]["InputMode"] = "FastFile"
    _run(stage, name, HyperParameters={"script": json.dumps("pass")}, **members)


def _attack_with_zip(stage: Stage, seed: int, random: Random, outside: Path) -> None:
    """A function's zip whose entries lead out of its folder."""
    functions, content = stage.client("lambda"), io.BytesIO()
    role = functions.get_function_configuration(FunctionName=DEFAULT_NAME)["Role"]
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("code.py", "def handle(event, context):\n    return 1\n")
        entry = zipfile.ZipInfo(random.choice((f"{outside}/evil", "../" * random.randrange(1, 12) + "evil", "link")))
        if entry.filename == "link":
            entry.external_attr = 0o120777 << 16
            archive.writestr(entry, str(outside))
            archive.writestr("link/evil", b"evil")
        else:
            archive.writestr(entry, b"evil")
    name = f"zip-{seed}"
    functions.create_function(
        FunctionName=name,
        Runtime="python3.11",
        Handler="code.handle",
        Role=role,
        Code={"ZipFile": content.getvalue()},
    )
    functions.invoke(FunctionName=name)
    functions.delete_function(FunctionName=name)


def _run(stage: Stage, name: str, **members: Any) -> dict[str, Any]:
    request = build_job(name, sick=False, environment={"SOAK": f"{stage.mark}-{name}"}) | members
    del request["DebugRuleConfigurations"]
    stage.client("sagemaker").create_training_job(**request)
    return stage.wait_for_end(name)


def _holds_secret(stage: Stage) -> bool:
    s3 = stage.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="output/"):
        for each in page.get("Contents", ()):
            body = s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read()
            if SECRET in body or (each["Key"].endswith(".gz") and SECRET in gzip.decompress(body)):
                return True
            s3.delete_object(Bucket=BUCKET, Key=each["Key"])
    return False


def _list_outside(course: Course) -> list[str]:
    """List what there is beside the state folder and its log, and of that name anywhere above it."""
    state = course.folder / "state"
    beside = [each for top in course.folder.iterdir() if top != state for each in (top, *top.rglob("*"))]
    above = [parent / "evil" for parent in (*course.folder.parents, state) if (parent / "evil").exists()]
    return sorted(map(str, [*beside, *above]))
