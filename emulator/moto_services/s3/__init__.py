"""S3: moto's buckets and objects, kept in a journal of ours, and their use by the emulator's own rooms."""
