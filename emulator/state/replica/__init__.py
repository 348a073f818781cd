"""State replication to another S3.

Another emulator can continue from the copy in its bucket.
"""
