resource "aws_s3_bucket" "runs" {
  bucket        = "debugger-runs-${data.aws_caller_identity.current.account_id}"
  force_destroy = true
}
resource "aws_s3_bucket_versioning" "runs" {
  bucket = aws_s3_bucket.runs.id
  versioning_configuration { status = "Enabled" }
}
resource "aws_s3_bucket_server_side_encryption_configuration" "runs" {
  bucket = aws_s3_bucket.runs.id
  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.runs.arn
    }
    bucket_key_enabled = true
  }
}
resource "aws_s3_bucket_public_access_block" "runs" {
  bucket                  = aws_s3_bucket.runs.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}
resource "aws_s3_bucket_ownership_controls" "runs" {
  bucket = aws_s3_bucket.runs.id
  rule { object_ownership = "BucketOwnerEnforced" }
}
resource "aws_s3_bucket_lifecycle_configuration" "runs" {
  bucket = aws_s3_bucket.runs.id
  rule {
    id     = "tensors"
    status = "Enabled"
    filter { prefix = "debug-output/" }
    expiration { days = 30 }
    noncurrent_version_expiration { noncurrent_days = 7 }
    abort_incomplete_multipart_upload { days_after_initiation = 1 }
  }
}
resource "aws_s3_bucket_cors_configuration" "runs" {
  bucket = aws_s3_bucket.runs.id
  cors_rule {
    allowed_methods = ["GET"]
    allowed_origins = ["https://example.com"]
  }
}
resource "aws_s3_bucket" "logs" { bucket = "debugger-logs" }
resource "aws_s3_bucket_logging" "runs" {
  bucket        = aws_s3_bucket.runs.id
  target_bucket = aws_s3_bucket.logs.id
  target_prefix = "log/"
  depends_on    = [aws_s3_bucket_policy.logs]
}
data "aws_iam_policy_document" "logs" {
  statement {
    actions   = ["s3:PutObject"]
    resources = ["${aws_s3_bucket.logs.arn}/*"]
    principals {
      type        = "Service"
      identifiers = ["logging.s3.amazonaws.com"]
    }
  }
}
resource "aws_s3_bucket_policy" "logs" {
  bucket = aws_s3_bucket.logs.id
  policy = data.aws_iam_policy_document.logs.json
}
data "aws_iam_policy_document" "runs" {
  statement {
    sid       = "OnlyTls"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [aws_s3_bucket.runs.arn, "${aws_s3_bucket.runs.arn}/*"]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}
resource "aws_s3_bucket_policy" "runs" {
  bucket = aws_s3_bucket.runs.id
  policy = data.aws_iam_policy_document.runs.json
}
resource "aws_s3_object" "script" {
  bucket      = aws_s3_bucket.runs.id
  key         = "code/m.py"
  source      = "${path.module}/files/m.py"
  etag        = null
  source_hash = filemd5("${path.module}/files/m.py")
}
resource "aws_s3_object" "model" {
  bucket  = aws_s3_bucket.runs.id
  key     = "model/model.tar.gz"
  content = "model"
}
resource "aws_s3_bucket_notification" "runs" {
  bucket      = aws_s3_bucket.runs.id
  eventbridge = true
  lambda_function {
    lambda_function_arn = aws_lambda_function.stop.arn
    events              = ["s3:ObjectCreated:*"]
    filter_prefix       = "debug-output/"
  }
  depends_on = [aws_lambda_permission.s3]
}
data "aws_s3_object" "script" {
  bucket = aws_s3_object.script.bucket
  key    = aws_s3_object.script.key
}
