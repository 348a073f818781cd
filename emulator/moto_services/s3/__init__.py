"""S3: moto's buckets and objects in a durable journal."""
