"""Substitute for sagemaker_tensorflow: a channel in Pipe mode as a data set."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .records import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PipeModeDataset", "PipeModeDatasetException"]


class PipeModeDatasetException(Exception):  # noqa: N818 - the name that scripts catch
    """A channel or a record format that does not exist."""


class PipeModeDataset:
    """A ``tf.data.Dataset`` of the records of a channel in Pipe mode: scalars of dtype string.

    Each iteration over the data set reads one epoch, from the channel's next pipe.
    """

    def __new__(
        cls,
        channel: str,
        record_format: str = "RecordIO",
        state_dir: str = "/opt/ml/pipe_state",
        pipe_dir: str = "/opt/ml/input/data",
        config_dir: str = "/opt/ml/input/config",
        **_unused: Any,
    ) -> Any:
        """Create the data set.

        Args:
            channel: name of the channel.
            record_format: ``RecordIO``, ``TFRecord`` or ``TextLine``.
            state_dir: folder for the numbers of the epochs that were read.
            pipe_dir: folder of the channels' pipes.
            config_dir: folder of the job's configuration.

        Raises:
            PipeModeDatasetException: the job has no such channel in Pipe mode, or the format is unknown.
        """
        import tensorflow as tf

        if record_format not in FORMATS:
            raise PipeModeDatasetException(
                f"{record_format!r} is not a record format: use one of {', '.join(FORMATS)}."
            )
        channels = json.loads(_relocate(config_dir).joinpath("inputdataconfig.json").read_text(encoding="utf-8"))
        if channels.get(channel, {}).get("TrainingInputMode") != "Pipe":
            raise PipeModeDatasetException(f"The job has no channel {channel!r} in Pipe mode.")
        folder, pipes = _relocate(state_dir), _relocate(pipe_dir)

        def read_epoch() -> Iterator[bytes]:
            folder.mkdir(parents=True, exist_ok=True)
            state = folder / channel
            epoch = int(state.read_text(encoding="utf-8")) if state.exists() else 0
            state.write_text(str(epoch + 1), encoding="utf-8")
            with (pipes / f"{channel}_{epoch}").open("rb") as stream:
                yield from FORMATS[record_format](stream)

        return tf.data.Dataset.from_generator(read_epoch, output_signature=tf.TensorSpec((), tf.string))


def _relocate(folder: str) -> Path:
    """Return a folder of ``/opt/ml`` where this job has it."""
    base = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
    return Path(base, os.path.relpath(folder, "/opt/ml")) if folder.startswith("/opt/ml/") else Path(folder)
