"""Encoding and decoding of event file records, in TensorFlow's framing.

An index entry has `start_idx` and `length` of the whole record, and two keys that smdebug ignores:

    crc32c     CRC-32C of the payload, not masked
    dtype      name of the tensor's dtype, only if it was widened to one that smdebug can read

`framing` has the framing of records, `encoding` and `decoding` their payload, `data_types` the types of tensors.
"""
