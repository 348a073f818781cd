resource "aws_cloudwatch_event_rule" "status" {
  name          = "debugger-status"
  description   = "verdicts"
  event_pattern = jsonencode({ source = ["aws.sagemaker"], detail-type = ["SageMaker Training Job State Change"], detail = { DebugRuleEvaluationStatuses = { RuleEvaluationStatus = ["IssuesFound"] } } })
}
resource "aws_cloudwatch_event_target" "stop" {
  rule      = aws_cloudwatch_event_rule.status.name
  target_id = "stop"
  arn       = aws_lambda_function.stop.arn
  retry_policy {
    maximum_event_age_in_seconds = 600
    maximum_retry_attempts       = 3
  }
  dead_letter_config { arn = aws_sqs_queue.dead.arn }
}
resource "aws_cloudwatch_event_target" "queue" {
  rule      = aws_cloudwatch_event_rule.status.name
  target_id = "queue"
  arn       = aws_sqs_queue.events.arn
  input_transformer {
    input_paths    = { job = "$.detail.TrainingJobName" }
    input_template = "\"<job> has an issue\""
  }
}
resource "aws_cloudwatch_event_target" "topic" {
  rule       = aws_cloudwatch_event_rule.status.name
  target_id  = "topic"
  arn        = aws_sns_topic.verdicts.arn
  input_path = "$.detail"
}
resource "aws_cloudwatch_event_rule" "nightly" {
  name                = "debugger-nightly"
  schedule_expression = "rate(1 day)"
  state               = "DISABLED"
}
resource "aws_cloudwatch_event_target" "pipeline" {
  rule     = aws_cloudwatch_event_rule.nightly.name
  arn      = aws_sagemaker_pipeline.train.arn
  role_arn = aws_iam_role.jobs.arn
  sagemaker_pipeline_target {
    pipeline_parameter_list {
      name  = "Epochs"
      value = "2"
    }
  }
}
resource "aws_cloudwatch_event_bus" "own" { name = "debugger" }
resource "aws_cloudwatch_event_rule" "own" {
  name           = "own"
  event_bus_name = aws_cloudwatch_event_bus.own.name
  event_pattern  = jsonencode({ source = ["mine"] })
}
resource "aws_cloudwatch_event_archive" "own" {
  name             = "debugger"
  event_source_arn = aws_cloudwatch_event_bus.own.arn
}
resource "aws_cloudwatch_event_permission" "own" {
  principal      = "111122223333"
  statement_id   = "Other"
  event_bus_name = aws_cloudwatch_event_bus.own.name
}
resource "aws_scheduler_schedule_group" "runs" { name = "debugger" }
resource "aws_scheduler_schedule" "train" {
  name                = "debugger-train"
  group_name          = aws_scheduler_schedule_group.runs.name
  schedule_expression = "rate(12 hours)"
  state               = "DISABLED"
  flexible_time_window { mode = "OFF" }
  target {
    arn      = aws_sagemaker_pipeline.train.arn
    role_arn = aws_iam_role.jobs.arn
    sagemaker_pipeline_parameters {
      pipeline_parameter {
        name  = "Epochs"
        value = "2"
      }
    }
  }
}
resource "aws_sqs_queue" "dead" { name = "debugger-dead" }
resource "aws_sqs_queue" "events" {
  name                       = "debugger-events"
  visibility_timeout_seconds = 60
  redrive_policy             = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = 3 })
}
resource "aws_sqs_queue" "fifo" {
  name                        = "debugger.fifo"
  fifo_queue                  = true
  content_based_deduplication = true
  kms_master_key_id           = aws_kms_alias.runs.name
}
resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  queue_url            = aws_sqs_queue.dead.id
  redrive_allow_policy = jsonencode({ redrivePermission = "byQueue", sourceQueueArns = [aws_sqs_queue.events.arn] })
}
resource "aws_sqs_queue_policy" "events" {
  queue_url = aws_sqs_queue.events.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Sid = "Events", Effect = "Allow", Principal = { Service = ["events.amazonaws.com", "sns.amazonaws.com"] }, Action = "sqs:SendMessage", Resource = aws_sqs_queue.events.arn }]
  })
}
resource "aws_sns_topic" "verdicts" {
  name              = "debugger-verdicts"
  display_name      = "Verdicts"
  kms_master_key_id = aws_kms_alias.runs.name
}
resource "aws_sns_topic_policy" "verdicts" {
  arn = aws_sns_topic.verdicts.arn
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Sid = "Events", Effect = "Allow", Principal = { Service = "events.amazonaws.com" }, Action = "sns:Publish", Resource = aws_sns_topic.verdicts.arn }]
  })
}
resource "aws_sns_topic_subscription" "queue" {
  topic_arn            = aws_sns_topic.verdicts.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.events.arn
  raw_message_delivery = true
  filter_policy        = jsonencode({ status = ["IssuesFound"] })
}
resource "aws_sns_topic_subscription" "function" {
  topic_arn = aws_sns_topic.verdicts.arn
  protocol  = "lambda"
  endpoint  = aws_lambda_function.stop.arn
}
resource "aws_sns_topic_subscription" "mail" {
  topic_arn = aws_sns_topic.verdicts.arn
  protocol  = "email"
  endpoint  = "someone@example.com"
}
