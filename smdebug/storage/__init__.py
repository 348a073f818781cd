"""Storage of runs on local disks and on S3; files appear complete or not at all."""
