"""Soak: an emulator's machine lost at any moment, and its replica continued.

The state folder is lost with it; another emulator continues from the copy in another S3.

Whatever was answered before an answered change of a job is there; of the rest, what is there is whole.
"""

import os
import shutil
import threading
import time
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.service.service import build_ending_request
from tests.other_s3 import VARIABLES, run_other_s3
from tests.running_emulator import RunningEmulator
from tests.soak.course import Course

LONG, SHORT = 60, 2
RUNTIMES = ("process",)
_BUCKET, _KEYS, _WRITERS = "soak", 30, 3
# Mostly as tensors are; some are objects of their own in the copy, and sent in parts.
_SIZES = (0, 100, 1_500, 1_500, 1_500, 20_000, 100_000)
_LARGE_BYTES = 6 * 1024**2
_LEAST_SECONDS, _MOST_SECONDS = 0.2, 3.0


@dataclass
class History:
    """What was asked of one object since it was last looked at, each with a number of its own.

    Attributes:
        there: numbers of puts.
        gone: numbers of deletions; 0 for an object that was not there.
        answered: the last number that was answered.
        settled: the last number that was answered before an answered change of a job was sent.
    """

    there: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=lambda: {0})
    answered: int = 0
    settled: int = 0

    def allows(self, number: int | None) -> bool:
        """Whether the object may be what a put of this number made it, or, for None, be gone."""
        if number is None:
            return any(each >= self.settled for each in self.gone)
        return number in self.there and number >= self.settled


class World:
    """What is asked of the emulators, one after the other."""

    def __init__(self) -> None:
        self.histories = {f"key-{number}": History() for number in range(_KEYS)}
        self.jobs: set[str] = set()
        self._lock = threading.Lock()
        self._number = 0

    def write(self, emulator: RunningEmulator, chance: Random, keys: list[str], ended: threading.Event) -> None:
        """Put and delete some objects, which nobody else does, until the emulator is gone."""
        s3 = emulator.client("s3")
        with suppress(BotoCoreError, ClientError, KeyError):  # the last of an answer that is cut lacks its members
            while not ended.is_set():
                history, key = self.histories[key := chance.choice(keys)], key
                with self._lock:
                    self._number += 1
                    number = self._number
                if chance.random() < 0.25:
                    history.gone.add(number)
                    s3.delete_object(Bucket=_BUCKET, Key=key)
                elif chance.random() < 0.03:
                    history.there.add(number)
                    put_in_parts(s3, key, build_content(number, _LARGE_BYTES))
                else:
                    history.there.add(number)
                    s3.put_object(Bucket=_BUCKET, Key=key, Body=build_content(number, chance.choice(_SIZES)))
                history.answered = number

    def create_jobs(self, emulator: RunningEmulator, ended: threading.Event) -> None:
        """Create jobs until the emulator is gone."""
        sagemaker = emulator.client("sagemaker")
        with suppress(BotoCoreError, ClientError):
            while not ended.is_set():
                answered = {key: history.answered for key, history in self.histories.items()}
                name = f"job-{uuid.uuid4().hex}"
                sagemaker.create_training_job(TrainingJobName=name, **build_ending_request())
                self.jobs.add(name)
                for key, number in answered.items():
                    self.histories[key].settled = number

    def find_faults(self, emulator: RunningEmulator) -> list[str]:
        """List what is other than it may be, and go on from what there is."""
        s3, faults = emulator.client("s3"), []
        for key, history in self.histories.items():
            number: int | None = None
            with suppress(s3.exceptions.NoSuchKey):
                content = s3.get_object(Bucket=_BUCKET, Key=key)["Body"].read()
                number = int(content.partition(b" ")[0])
                if content != build_content(number, len(content)):
                    faults.append(f"{key} is damaged")
            if not history.allows(number):
                faults.append(f"{key} is {number}, and not as after {history}")
            self.histories[key] = History(gone={0}) if number is None else History({number}, set(), number, number)
        listed = emulator.client("sagemaker").get_paginator("list_training_jobs").paginate()
        found = {each["TrainingJobName"] for page in listed for each in page["TrainingJobSummaries"]}
        faults += [f"{name} is lost" for name in self.jobs - found]
        self.jobs = found
        if "Traceback" in (log := emulator.log_text()) or "damaged" in log:
            faults.append(log)
        return faults


def build_content(number: int, size: int) -> bytes:
    """Build what a put of a number stores."""
    text = f"{number} ".encode()
    return (text * (size // len(text) + 1))[: max(size, len(text))]


def put_in_parts(s3: Any, key: str, content: bytes) -> None:
    """Put an object as a multipart upload of two."""
    upload = s3.create_multipart_upload(Bucket=_BUCKET, Key=key)["UploadId"]
    cut, parts = 5 * 1024**2, []
    for number, body in enumerate((content[:cut], content[cut:]), 1):
        named = {"Bucket": _BUCKET, "Key": key, "UploadId": upload, "PartNumber": number}
        parts.append({"ETag": s3.upload_part(Body=body, **named)["ETag"], "PartNumber": number})
    s3.complete_multipart_upload(Bucket=_BUCKET, Key=key, UploadId=upload, MultipartUpload={"Parts": parts})


def run(course: Course) -> None:
    """Lose the emulator and its folder in each round, and look at what the next one has."""
    world, moved = World(), 0
    with run_other_s3() as other, ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, VARIABLES | {"SMDEBUG_EMULATOR_S3_ENDPOINT": other.endpoint_url}))
        emulator = RunningEmulator(course.folder / "0" / "state", runtime="process")
        stack.callback(lambda: emulator.stop())
        emulator.client("s3").create_bucket(Bucket=_BUCKET)
        # Which is in the copy when this is answered.
        world.create_jobs(emulator, _Once())
        for seed, chance in course.draw_rounds():
            ended = threading.Event()
            threads = [threading.Thread(target=world.create_jobs, args=(emulator, ended))]
            for number in range(_WRITERS):
                keys = sorted(world.histories)[number::_WRITERS]
                threads.append(threading.Thread(target=world.write, args=(emulator, chance, keys, ended)))
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(_LEAST_SECONDS, _MOST_SECONDS))
            emulator.kill()
            ended.set()
            for thread in threads:
                thread.join()
            shutil.rmtree(emulator.state_dir)
            began = time.monotonic()
            emulator = RunningEmulator(course.folder / str(seed) / "state", runtime="process")
            moved += 1
            course.figures["until the next one answers"] = f"{time.monotonic() - began:.1f} s, the last of {moved}"
            for fault in world.find_faults(emulator):
                course.fail(seed, fault)


class _Once(threading.Event):
    def is_set(self) -> bool:
        if super().is_set():
            return True
        self.set()
        return False
