"""The state of the emulator once more, in a bucket of another S3: from there another emulator goes on."""
