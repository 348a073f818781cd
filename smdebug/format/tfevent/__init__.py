"""Records of event files: one tensor each, framed as TensorFlow frames its events, both ways.

An index entry holds `start_idx` and `length` of the whole record, and beside them, where the original ignores it:

    crc32c     CRC-32C of the payload, not masked
    dtype      name of the tensor's dtype, only where it was widened to one that the original can read

`framing` is how records follow each other, `encoding` and `decoding` what is in them, `data_types` which tensors.
"""
