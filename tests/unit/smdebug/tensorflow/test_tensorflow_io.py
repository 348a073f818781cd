"""Paths of S3 in a TensorFlow that has no tensorflow-io."""

import importlib
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import numpy as np
import pytest

from smdebug.absent_modules import SCRIPT_PACKAGES
from tests.unit.smdebug.tensorflow.frameworks import keras, tf

pytestmark = pytest.mark.slow
BUCKET = "models"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


@pytest.fixture(scope="module")
def folder(moto_endpoint: str) -> Iterator[str]:
    """A path in a bucket, and TensorFlow with the file system for it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": moto_endpoint}.items():
            patch.setenv(name, value)
        patch.syspath_prepend(str(SCRIPT_PACKAGES))
        importlib.import_module("tensorflow_io")
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield f"s3://{BUCKET}/job"
        urllib.request.urlopen(urllib.request.Request(f"{moto_endpoint}/moto-api/reset", method="POST")).close()


def read(path: str) -> bytes:
    _, _, rest = path.partition("s3://")
    bucket, _, key = rest.partition("/")
    content: bytes = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return content


def test_files_are_written_read_and_appended_to(folder: str) -> None:
    path = f"{folder}/files/lines.txt"
    with tf.io.gfile.GFile(path, "w") as file:
        file.write("one\ntwo\n")
        file.flush()
        assert read(path) == b"one\ntwo\n"
        file.write("three\n")
        assert file.tell() == 14
    with tf.io.gfile.GFile(path, "a") as file:
        file.write("four\n")
    assert list(tf.io.gfile.GFile(path)) == ["one\n", "two\n", "three\n", "four\n"]
    assert tf.io.gfile.stat(path).length == len(read(path)) == 19
    big = os.urandom(3 << 20)
    with tf.io.gfile.GFile(f"{folder}/files/big", "wb") as file:
        file.write(big)
    with tf.io.gfile.GFile(f"{folder}/files/big", "rb") as file:
        file.seek(2 << 20)
        assert file.read(1 << 10) == big[2 << 20 :][: 1 << 10]
        file.seek(0)
        assert file.read() == big


def test_folders_are_listed_moved_and_removed(folder: str) -> None:
    gfile, top = tf.io.gfile, f"{folder}/folders"
    gfile.makedirs(f"{top}/empty/inner")
    assert gfile.isdir(f"{top}/empty/inner")
    assert not gfile.exists(f"{top}/other")
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        with gfile.GFile(f"{top}/{name}", "w") as file:
            file.write(name)
    assert not gfile.isdir(f"{top}/a.txt")
    assert sorted(gfile.listdir(top)) == ["a.txt", "b.txt", "empty", "sub"]
    assert sorted(gfile.glob(f"{top}/*.txt")) == [f"{top}/a.txt", f"{top}/b.txt"]
    assert {root: files for root, _, files in gfile.walk(top)}[f"{top}/sub"] == ["c.txt"]
    gfile.copy(f"{top}/a.txt", f"{top}/sub/d.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.copy(f"{top}/a.txt", f"{top}/b.txt")
    gfile.rename(f"{top}/sub", f"{top}/moved")
    assert sorted(gfile.listdir(f"{top}/moved")) == ["c.txt", "d.txt"]
    gfile.remove(f"{top}/a.txt")
    assert not gfile.exists(f"{top}/a.txt")
    gfile.rmtree(top)
    assert not gfile.exists(top)


def test_what_is_not_there_is_an_error_of_tensorflow(folder: str) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="There is no object s3://models/job/none"):
        tf.io.gfile.GFile(f"{folder}/none").read()
    with pytest.raises(tf.errors.NotFoundError):
        tf.io.gfile.remove(f"{folder}/none")
    with pytest.raises(tf.errors.NotFoundError):
        tf.io.gfile.listdir(f"{folder}/none")
    with pytest.raises(tf.errors.OpError, match="NoSuchBucket"), tf.io.gfile.GFile("s3://no-bucket/x", "w") as file:
        file.write("lost")


@pytest.mark.nightly  # the tests above have what it asks of the file system
# Keras 3 asks TensorFlow's variables in a way that numpy 2 announces the end of.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_models_checkpoints_and_records_are_kept_there(folder: str) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    inputs = np.ones((4, 4), np.float32)
    kept = keras.callbacks.ModelCheckpoint(f"{folder}/epochs/{{epoch}}.keras")
    model.fit(inputs, np.ones((4, 2)), verbose=0, callbacks=[kept])
    expected = model(inputs).numpy()
    np.testing.assert_array_equal(keras.models.load_model(f"{folder}/epochs/1.keras")(inputs).numpy(), expected)
    tf.saved_model.save(model, f"{folder}/saved/1")
    served = tf.saved_model.load(f"{folder}/saved/1").signatures["serving_default"](tf.constant(inputs))
    np.testing.assert_allclose(next(iter(served.values())), expected, rtol=1e-6)
    checkpoints = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), f"{folder}/checkpoints", max_to_keep=2)
    for _ in range(3):
        checkpoints.save()
    assert tf.train.latest_checkpoint(f"{folder}/checkpoints") == f"{folder}/checkpoints/ckpt-3"
    assert not tf.io.gfile.glob(f"{folder}/checkpoints/ckpt-1*")
    checkpoints.checkpoint.restore(checkpoints.latest_checkpoint).assert_consumed()
    with tf.io.TFRecordWriter(f"{folder}/records") as writer:
        for size in range(300):
            writer.write(b"x" * size)
    # From several threads of TensorFlow's.
    records = tf.data.TFRecordDataset([f"{folder}/records"] * 3, num_parallel_reads=3)
    assert sum(len(record) for record in records.as_numpy_iterator()) == 3 * sum(range(300))


@pytest.mark.nightly  # end_to_end/test_tensorflow.py has such a script in a job
@pytest.mark.parametrize("way", ["imported", "captured"])
def test_a_script_that_is_given_such_a_path_ends_well(
    moto_endpoint: str, folder: str, tmp_path: Path, way: str
) -> None:
    """Also if it leaves files open, which TensorFlow closes when Python is gone."""
    path = f"{folder}/{way}"
    (tmp_path / "train.py").write_text(
        ("import tensorflow_io\n" if way == "imported" else "") + "import sys, tensorflow as tf\n"
        "writer = tf.io.TFRecordWriter(sys.argv[1] + '/open')\n"
        "writer.write(b'x')\n"
        "with tf.io.gfile.GFile(sys.argv[1] + '/done', 'w') as file: file.write('done')\n"
        "writer.flush()\n"
        "left = tf.io.gfile.GFile(sys.argv[1] + '/left', 'w'); left.write('left')\n"
    )
    (tmp_path / "debughookconfig.json").write_text('{"LocalPath": "' + str(tmp_path / "run") + '"}')
    environment = {**os.environ, **ENVIRONMENT, "AWS_ENDPOINT_URL": moto_endpoint}
    if way == "imported":
        environment["PYTHONPATH"] = str(SCRIPT_PACKAGES)
    else:
        environment["SMDEBUG_CONFIG_FILE_PATH"] = str(tmp_path / "debughookconfig.json")
    command = [sys.executable, *([] if way == "imported" else ["-c", START]), str(tmp_path / "train.py"), path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert read(f"{path}/done") == b"done"
    assert b"x" in read(f"{path}/open")


# As `autoload.pth` does it where the package is installed.
START = "import runpy, sys, smdebug.autoload; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
