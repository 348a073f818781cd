"""State replication to another S3.

Another emulator can continue from the replica in the bucket.
"""
