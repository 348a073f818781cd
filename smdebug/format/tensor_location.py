"""Entries of index files: locations of records, and shapes."""

from typing import NamedTuple


class TensorLocation(NamedTuple):
    """One record of an event file.

    Attributes:
        tensorname: the tag of the record: the tensor's name, or the name of one of its saved reductions.
        event_file_name: path of the event file, relative to the run's folder.
        start_idx: byte offset of the record's length field.
        length: size of the whole record in bytes, including 16 bytes of framing.
        crc32c: CRC-32C of the record's payload; None if it is not in the index.
        true_dtype: the tensor's dtype before it was widened for the file; None if it was not widened.
    """

    tensorname: str
    event_file_name: str
    start_idx: int
    length: int
    crc32c: int | None
    true_dtype: str | None


class TensorShape(NamedTuple):
    """The shape of a tensor, saved with or without its value.

    Attributes:
        name: the tensor's name.
        original_name: the framework's name of the tensor.
        shape: size of each dimension.
    """

    name: str
    original_name: str
    shape: tuple[int, ...]
