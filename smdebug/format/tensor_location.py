"""Where an index file says that things are: one record of an event file, or one shape."""

from typing import NamedTuple


class TensorLocation(NamedTuple):
    """One record of an event file.

    Attributes:
        tensorname: the tag of the record: the tensor's name, or the name of one of its saved reductions.
        event_file_name: path of the event file, relative to the run's folder.
        start_idx: byte offset of the record's length field.
        length: bytes of the whole record, its framing of 16 bytes included.
        crc32c: CRC-32C of the record's payload, where the writer put it into the index; None otherwise.
        true_dtype: the dtype that the tensor had before it was widened for the file; None if it was not.
    """

    tensorname: str
    event_file_name: str
    start_idx: int
    length: int
    crc32c: int | None
    true_dtype: str | None


class TensorShape(NamedTuple):
    """The shape of a tensor, saved without (or beside) its value.

    Attributes:
        name: the tensor's name.
        original_name: the name the framework knows it by.
        shape: size of each dimension.
    """

    name: str
    original_name: str
    shape: tuple[int, ...]
