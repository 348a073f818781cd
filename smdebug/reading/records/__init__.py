"""Records of event files: decoding, verification, and templates of repeated bytes."""
