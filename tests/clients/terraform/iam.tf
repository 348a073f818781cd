data "aws_iam_policy_document" "trust" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["sagemaker.amazonaws.com", "lambda.amazonaws.com", "scheduler.amazonaws.com", "events.amazonaws.com"]
    }
  }
}
data "aws_iam_policy_document" "runs_access" {
  statement {
    actions   = ["s3:GetObject", "s3:PutObject", "s3:ListBucket"]
    resources = [aws_s3_bucket.runs.arn, "${aws_s3_bucket.runs.arn}/*"]
  }
}
resource "aws_iam_role" "jobs" {
  name                 = "debugger-jobs"
  assume_role_policy   = data.aws_iam_policy_document.trust.json
  description          = "jobs"
  max_session_duration = 7200
}
resource "aws_iam_policy" "runs" {
  name   = "debugger-runs"
  path   = "/debugger/"
  policy = data.aws_iam_policy_document.runs_access.json
}
resource "aws_iam_role_policy_attachment" "runs" {
  role       = aws_iam_role.jobs.name
  policy_arn = aws_iam_policy.runs.arn
}
resource "aws_iam_role_policy_attachment" "full" {
  role       = aws_iam_role.jobs.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonSageMakerFullAccess"
}
resource "aws_iam_role_policy" "inline" {
  name   = "inline"
  role   = aws_iam_role.jobs.id
  policy = data.aws_iam_policy_document.runs_access.json
}
resource "aws_iam_user" "ci" { name = "debugger-ci" }
resource "aws_iam_access_key" "ci" { user = aws_iam_user.ci.name }
resource "aws_iam_group" "ci" { name = "debugger-ci" }
resource "aws_iam_user_group_membership" "ci" {
  user   = aws_iam_user.ci.name
  groups = [aws_iam_group.ci.name]
}
resource "aws_iam_group_policy_attachment" "ci" {
  group      = aws_iam_group.ci.name
  policy_arn = aws_iam_policy.runs.arn
}
resource "aws_iam_user_policy" "ci" {
  name   = "ci"
  user   = aws_iam_user.ci.name
  policy = data.aws_iam_policy_document.runs_access.json
}
resource "aws_iam_instance_profile" "jobs" {
  name = "debugger-jobs"
  role = aws_iam_role.jobs.name
}
data "aws_iam_role" "jobs" { name = aws_iam_role.jobs.name }

data "aws_iam_policy" "full" { name = "AmazonSageMakerFullAccess" }
