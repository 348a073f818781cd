"""Records of event files: one tensor each, framed as TensorFlow frames its events, both ways.

An index entry holds `start_idx` and `length` of the whole record, and beside them, where the original ignores it:

    crc32c     CRC-32C of the payload, not masked
    dtype      name of the tensor's dtype, only where it was widened to one that the original can read

`framing` is how records follow each other, `encoding` and `decoding` what is in them, `data_types` which tensors.
"""

from smdebug.format.tfevent.data_types import (
    DATA_TYPE_NUMBERS,
    DATA_TYPES,
    STRING_DATA_TYPE,
    WIDENED,
    get_dtype_name,
    get_plain_array,
    get_storable_array,
)
from smdebug.format.tfevent.decoding import Event, SummaryValue, decode_event, read_events
from smdebug.format.tfevent.encoding import (
    Heads,
    encode_event_fields,
    encode_heads,
    encode_metadata,
    encode_padding,
    encode_string_heads,
)
from smdebug.format.tfevent.framing import (
    CHECKSUM_MAGIC_BYTES,
    CONSTANT_FOOTER,
    FOOTER_BYTES,
    FRAMING_BYTES,
    HEADER_BYTES,
    encode_record,
    get_footer,
    mask_crc,
    masked_crc32c,
    read_record,
)

__all__ = [
    "CHECKSUM_MAGIC_BYTES",
    "CONSTANT_FOOTER",
    "DATA_TYPES",
    "DATA_TYPE_NUMBERS",
    "FOOTER_BYTES",
    "FRAMING_BYTES",
    "HEADER_BYTES",
    "INDEX_CRC_KEY",
    "INDEX_DTYPE_KEY",
    "STRING_DATA_TYPE",
    "WIDENED",
    "Event",
    "Heads",
    "SummaryValue",
    "decode_event",
    "encode_event_fields",
    "encode_heads",
    "encode_metadata",
    "encode_padding",
    "encode_record",
    "encode_string_heads",
    "get_dtype_name",
    "get_footer",
    "get_plain_array",
    "get_storable_array",
    "mask_crc",
    "masked_crc32c",
    "read_events",
    "read_record",
]

INDEX_CRC_KEY = "crc32c"
INDEX_DTYPE_KEY = "dtype"
