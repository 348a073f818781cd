"""Tests of jobs with channels in Pipe mode."""

import gzip
import json
import struct
from typing import Any

from emulator.jobs.staging.pipes import cut_record, wrap_record
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import wait_until

LOG = "/aws/sagemaker/TrainingJobs"
LARGE = bytes(range(256)) * 1024
SCRIPT = """
import struct
data = ml / "input/data"
def read(name):
    with open(data / name, "rb") as pipe:
        return pipe.read()
def records(name):
    found = []
    with open(data / name, "rb") as pipe:
        while header := pipe.read(8):
            magic, length = struct.unpack("<II", header)
            assert magic == 0xCED7230A
            found.append(pipe.read(length))
            pipe.read(-length % 4)
    return found
with open(data / "plain_0", "rb") as pipe:
    pipe.read(3)  # closed before its end
plain = [read("plain_1").decode(), read("plain_2").decode()]
wrapped = [len(record) for record in records("wrapped_0")]
augmented = [[record.decode() for record in records(f"augmented_{epoch}")] for epoch in (0, 1)]
print(json.dumps([plain, wrapped, augmented, (data / "fast/a").read_text()]), flush=True)
print(sorted(os.listdir(data)))
"""


def channel(harness: JobHarness, name: str, key: str, kind: str = "S3Prefix", **members: Any) -> dict[str, Any]:
    source = {"S3DataType": kind, "S3Uri": f"s3://{harness.bucket}/{key}"}
    if kind == "AugmentedManifestFile":
        source["AttributeNames"] = ["text-ref", "label"]  # type: ignore[assignment]
    return {"ChannelName": name, "InputMode": "Pipe", "DataSource": {"S3DataSource": source}, **members}


def test_every_kind_of_pipe(harness: JobHarness) -> None:
    for name in "abcdefgh":
        harness.s3.put(harness.bucket, f"plain/{name}", name.encode() * 3)
    harness.s3.put(harness.bucket, "wrapped/a", gzip.compress(LARGE))
    harness.s3.put(harness.bucket, "wrapped/b", gzip.compress(b"12345"))
    lines = [{"text-ref": f"s3://{harness.bucket}/plain/{name}", "label": {"is": name}, "more": 1} for name in "ab"]
    harness.s3.put(harness.bucket, "lines", "\n".join(map(json.dumps, lines)).encode())
    channels = [
        channel(harness, "plain", "plain/", ShuffleConfig={"Seed": 1}),
        channel(harness, "wrapped", "wrapped/", RecordWrapperType="RecordIO", CompressionType="Gzip"),
        channel(harness, "augmented", "lines", "AugmentedManifestFile", RecordWrapperType="RecordIO"),
        channel(harness, "fast", "plain/", InputMode="FastFile"),
    ]
    done = harness.run(harness.request(script=SCRIPT, InputDataConfig=channels))
    assert done["TrainingJobStatus"] == "Completed", done
    note, found, _ = harness.log(LOG, "job/")
    assert "FastFile channels (fast) are downloaded" in note
    plain, wrapped, augmented, fast = json.loads(found)
    for epoch in plain:
        assert sorted(epoch) == sorted("abcdefgh" * 3)
    assert plain[0] != plain[1], "shuffled anew"
    assert wrapped == [len(LARGE), 5]
    assert augmented == [["aaa", '{"is": "a"}', "bbb", '{"is": "b"}']] * 2
    assert fast == "aaa"


def test_a_pipe_that_is_not_read_ends_with_its_job(harness: JobHarness) -> None:
    harness.s3.put(harness.bucket, "plain/a", LARGE * 8)
    script = "pipe = open(ml / 'input/data/plain_0', 'rb'); pipe.read(10); print('ready', flush=True); time.sleep(600)"
    harness.jobs.training.create(
        REGION, harness.request(script=script, InputDataConfig=[channel(harness, "plain", "plain/")])
    )
    harness.wait_for_stage("Training")
    wait_until(lambda: "ready" in harness.log(LOG, "job/"), harness.describe)
    harness.jobs.training.stop(REGION, "job")
    assert harness.wait()["TrainingJobStatus"] == "Stopped"


def test_data_that_cannot_be_sent_fail_the_job(harness: JobHarness) -> None:
    harness.s3.put(
        harness.bucket, "lines", json.dumps({"text-ref": f"s3://{harness.bucket}/gone", "label": 1}).encode()
    )
    script = "open(ml / 'input/data/train_0', 'rb').read(); time.sleep(600)"
    channels = [channel(harness, "train", "lines", "AugmentedManifestFile")]
    done = harness.run(harness.request(script=script, InputDataConfig=channels))
    assert done["TrainingJobStatus"] == "Failed"
    assert done["FailureReason"].startswith("ClientError: Data of a channel could not be sent")
    assert "gone" in done["FailureReason"]


def test_a_record_is_cut_at_512_mebibytes() -> None:
    assert wrap_record(b"") == struct.pack("<II", 0xCED7230A, 0)
    assert [struct.unpack("<II", header)[1] >> 29 for header, _, _ in cut_record(3 << 29)] == [1, 2, 2, 3]
    assert sum(length for _, length, _ in cut_record(3 << 29)) == 3 << 29


def test_a_gzip_object_that_is_damaged_fails_the_job(harness: JobHarness) -> None:
    packed = bytearray(gzip.compress(LARGE))
    packed[20:30] = b"\xff" * 10
    harness.s3.put(harness.bucket, "damaged/a", bytes(packed))
    channels = [channel(harness, "damaged", "damaged/", CompressionType="Gzip")]
    script = "(ml / 'input/data/damaged_0').read_bytes()"
    done = harness.run(harness.request(script=script, InputDataConfig=channels))
    assert done["TrainingJobStatus"] == "Failed", done
    assert f"s3://{harness.bucket}/damaged/a is no complete gzip file" in done["FailureReason"]
