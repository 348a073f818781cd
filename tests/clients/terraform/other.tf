resource "aws_kms_key" "runs" {
  description             = "runs"
  deletion_window_in_days = 7
  enable_key_rotation     = true
}
resource "aws_kms_alias" "runs" {
  name          = "alias/debugger"
  target_key_id = aws_kms_key.runs.key_id
}
resource "aws_ecr_repository" "training" {
  name                 = "debugger-training"
  image_tag_mutability = "IMMUTABLE"
  force_delete         = true
  image_scanning_configuration { scan_on_push = true }
}
resource "aws_ecr_lifecycle_policy" "training" {
  repository = aws_ecr_repository.training.name
  policy     = jsonencode({ rules = [{ rulePriority = 1, selection = { tagStatus = "untagged", countType = "imageCountMoreThan", countNumber = 5 }, action = { type = "expire" } }] })
}
resource "aws_ecr_repository_policy" "training" {
  repository = aws_ecr_repository.training.name
  policy     = jsonencode({ Version = "2012-10-17", Statement = [{ Sid = "Pull", Effect = "Allow", Principal = { Service = "sagemaker.amazonaws.com" }, Action = ["ecr:BatchGetImage"] }] })
}
resource "aws_dynamodb_table" "verdicts" {
  name         = "debugger-verdicts"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "job"
  range_key    = "rule"
  attribute {
    name = "job"
    type = "S"
  }
  attribute {
    name = "rule"
    type = "S"
  }
  ttl {
    attribute_name = "expires"
    enabled        = true
  }
  point_in_time_recovery { enabled = true }
  server_side_encryption { enabled = true }
}
resource "aws_dynamodb_table_item" "verdict" {
  table_name = aws_dynamodb_table.verdicts.name
  hash_key   = aws_dynamodb_table.verdicts.hash_key
  range_key  = aws_dynamodb_table.verdicts.range_key
  item       = jsonencode({ job = { S = "j" }, rule = { S = "r" } })
}
resource "aws_ssm_parameter" "image" {
  name  = "/debugger/image"
  type  = "String"
  value = data.aws_sagemaker_prebuilt_ecr_image.xgboost.registry_path
}
resource "aws_ssm_parameter" "secret" {
  name   = "/debugger/secret"
  type   = "SecureString"
  value  = "s"
  key_id = aws_kms_key.runs.key_id
}
resource "aws_secretsmanager_secret" "token" {
  name                    = "debugger-token"
  recovery_window_in_days = 0
  kms_key_id              = aws_kms_key.runs.arn
}
resource "aws_secretsmanager_secret_version" "token" {
  secret_id     = aws_secretsmanager_secret.token.id
  secret_string = "s"
}
data "aws_secretsmanager_secret_version" "token" { secret_id = aws_secretsmanager_secret_version.token.secret_id }
data "aws_ssm_parameter" "image" { name = aws_ssm_parameter.image.name }
