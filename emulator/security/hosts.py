"""Bucket names in host names."""

_SUFFIX = ".localhost"


def find_bucket_in_host(host: str) -> str | None:
    """Return the bucket that a Host header names, as in ``my-bucket.localhost:4580``; None if the path names it.

    Other names, such as ``lab.example.com``, are those of this machine.

    >>> [find_bucket_in_host(host) for host in ("b.localhost:1", "b.c.S3.LocalHost.", "s3.localhost", "a.example.com")]
    ['b', 'b.c', None, None]
    """
    name = host.lower().partition(":")[0].rstrip(".")
    if not name.endswith(_SUFFIX):
        return None
    bucket = name.removesuffix(_SUFFIX).removesuffix(".s3")
    return None if bucket == "s3" else bucket
