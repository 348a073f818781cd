"""Files of records, under the names that code written for smdebug knows; `smdebug.core.tfevent` does the work."""

from smdebug.core.tfevent import CHECKSUM_MAGIC_BYTES, masked_crc32c
from smdebug.core.tfrecord.record_reader import RecordReader
from smdebug.core.tfrecord.record_writer import RecordWriter
from smdebug.core.tfrecord.tensor_reader import TensorReader

__all__ = ["CHECKSUM_MAGIC_BYTES", "RecordReader", "RecordWriter", "TensorReader", "masked_crc32c"]
