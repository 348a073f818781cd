"""Signatures, keys, certificates and trust."""
