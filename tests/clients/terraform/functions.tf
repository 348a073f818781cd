resource "aws_lambda_layer_version" "common" {
  layer_name          = "debugger-common"
  filename            = "${path.module}/files/layer.zip"
  source_code_hash    = filebase64sha256("${path.module}/files/layer.zip")
  compatible_runtimes = ["python3.11"]
}
resource "aws_lambda_function" "stop" {
  function_name                  = "debugger-stop"
  role                           = aws_iam_role.jobs.arn
  runtime                        = "python3.11"
  handler                        = "m.handler"
  filename                       = "${path.module}/files/m.zip"
  source_code_hash               = filebase64sha256("${path.module}/files/m.zip")
  layers                         = [aws_lambda_layer_version.common.arn]
  timeout                        = 30
  memory_size                    = 256
  publish                        = true
  kms_key_arn                    = aws_kms_key.runs.arn
  reserved_concurrent_executions = 5
  environment { variables = { BUCKET = aws_s3_bucket.runs.id } }
  dead_letter_config { target_arn = aws_sqs_queue.dead.arn }
  tracing_config { mode = "PassThrough" }
  depends_on = [aws_cloudwatch_log_group.stop]
}
resource "aws_lambda_alias" "live" {
  name             = "live"
  function_name    = aws_lambda_function.stop.function_name
  function_version = aws_lambda_function.stop.version
}
resource "aws_lambda_permission" "events" {
  statement_id  = "AllowEvents"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.stop.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.status.arn
}
resource "aws_lambda_permission" "alias" {
  statement_id  = "AllowEvents"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.stop.function_name
  qualifier     = aws_lambda_alias.live.name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.status.arn
}
resource "aws_lambda_permission" "s3" {
  statement_id   = "AllowS3"
  action         = "lambda:InvokeFunction"
  function_name  = aws_lambda_function.stop.function_name
  principal      = "s3.amazonaws.com"
  source_arn     = aws_s3_bucket.runs.arn
  source_account = data.aws_caller_identity.current.account_id
}
resource "aws_lambda_event_source_mapping" "queue" {
  event_source_arn = aws_sqs_queue.events.arn
  function_name    = aws_lambda_function.stop.arn
  batch_size       = 5
}
resource "aws_lambda_function_url" "stop" {
  function_name      = aws_lambda_function.stop.function_name
  authorization_type = "NONE"
}
resource "aws_lambda_function_event_invoke_config" "stop" {
  function_name          = aws_lambda_function.stop.function_name
  maximum_retry_attempts = 1
  destination_config {
    on_failure { destination = aws_sqs_queue.dead.arn }
  }
}
data "aws_lambda_function" "stop" { function_name = aws_lambda_function.stop.function_name }
data "aws_lambda_invocation" "stop" {
  function_name = aws_lambda_function.stop.function_name
  input         = jsonencode({ a = 1 })
}
resource "aws_cloudwatch_log_group" "stop" {
  name              = "/aws/lambda/debugger-stop"
  retention_in_days = 7
  kms_key_id        = aws_kms_key.runs.arn
}
resource "aws_cloudwatch_log_group" "jobs" { name = "/aws/sagemaker/TrainingJobs" }
resource "aws_cloudwatch_log_stream" "jobs" {
  name           = "of-terraform"
  log_group_name = aws_cloudwatch_log_group.jobs.name
}
resource "aws_cloudwatch_log_metric_filter" "errors" {
  name           = "errors"
  pattern        = "ERROR"
  log_group_name = aws_cloudwatch_log_group.jobs.name
  metric_transformation {
    name      = "Errors"
    namespace = "Debugger"
    value     = "1"
  }
}
resource "aws_cloudwatch_log_subscription_filter" "errors" {
  name            = "errors"
  log_group_name  = aws_cloudwatch_log_group.jobs.name
  filter_pattern  = "ERROR"
  destination_arn = aws_lambda_function.stop.arn
  depends_on      = [aws_lambda_permission.logs]
}
resource "aws_lambda_permission" "logs" {
  statement_id  = "AllowLogs"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.stop.function_name
  principal     = "logs.amazonaws.com"
}
resource "aws_cloudwatch_log_resource_policy" "events" {
  policy_name = "events"
  policy_document = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "events.amazonaws.com" }, Action = ["logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.jobs.arn}:*" }]
  })
}
resource "aws_cloudwatch_metric_alarm" "loss" {
  alarm_name          = "debugger-loss"
  comparison_operator = "GreaterThanThreshold"
  evaluation_periods  = 1
  metric_name         = "Errors"
  namespace           = "Debugger"
  period              = 60
  statistic           = "Sum"
  threshold           = 1
  alarm_actions       = [aws_sns_topic.verdicts.arn]
}
resource "aws_cloudwatch_composite_alarm" "any" {
  alarm_name = "debugger-any"
  alarm_rule = "ALARM(${aws_cloudwatch_metric_alarm.loss.alarm_name})"
}
resource "aws_cloudwatch_dashboard" "runs" {
  dashboard_name = "debugger"
  dashboard_body = jsonencode({ widgets = [{ type = "text", x = 0, y = 0, width = 3, height = 3, properties = { markdown = "x" } }] })
}
