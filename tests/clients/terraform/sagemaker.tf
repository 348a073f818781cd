resource "aws_sagemaker_model_package_group" "models" {
  model_package_group_name        = "debugger-models"
  model_package_group_description = "models"
}
resource "aws_sagemaker_model_package_group_policy" "models" {
  model_package_group_name = aws_sagemaker_model_package_group.models.model_package_group_name
  resource_policy          = jsonencode({ Version = "2012-10-17", Statement = [{ Sid = "Read", Effect = "Allow", Principal = { AWS = "arn:aws:iam::111122223333:root" }, Action = ["sagemaker:DescribeModelPackage"], Resource = "*" }] })
}
resource "aws_sagemaker_model" "model" {
  name               = "debugger-model"
  execution_role_arn = aws_iam_role.jobs.arn
  primary_container {
    image          = data.aws_sagemaker_prebuilt_ecr_image.xgboost.registry_path
    model_data_url = "s3://${aws_s3_object.model.bucket}/${aws_s3_object.model.key}"
    environment    = { A = "1" }
  }
}
resource "aws_sagemaker_endpoint_configuration" "model" {
  name = "debugger-model"
  production_variants {
    variant_name           = "all"
    model_name             = aws_sagemaker_model.model.name
    initial_instance_count = 1
    instance_type          = "ml.m5.large"
  }
}
resource "aws_sagemaker_endpoint" "model" {
  name                 = "debugger-model"
  endpoint_config_name = aws_sagemaker_endpoint_configuration.model.name
}
resource "aws_sagemaker_pipeline" "train" {
  pipeline_name         = "debugger-train"
  pipeline_display_name = "debugger-train"
  role_arn              = aws_iam_role.jobs.arn
  pipeline_definition = jsonencode({
    Version    = "2020-12-01"
    Parameters = [{ Name = "Epochs", Type = "Integer", DefaultValue = 1 }]
    Steps      = [{ Name = "End", Type = "Fail", Arguments = { ErrorMessage = "x" } }]
  })
  parallelism_configuration { max_parallel_execution_steps = 2 }
}
resource "aws_sagemaker_feature_group" "runs" {
  feature_group_name             = "debugger-runs"
  record_identifier_feature_name = "job"
  event_time_feature_name        = "time"
  role_arn                       = aws_iam_role.jobs.arn
  feature_definition {
    feature_name = "job"
    feature_type = "String"
  }
  feature_definition {
    feature_name = "time"
    feature_type = "String"
  }
  online_store_config { enable_online_store = true }
}
resource "aws_sagemaker_image" "training" {
  image_name = "debugger-training"
  role_arn   = aws_iam_role.jobs.arn
}
resource "aws_sagemaker_app_image_config" "training" {
  app_image_config_name = "debugger-training"
  kernel_gateway_image_config {
    kernel_spec { name = "python3" }
  }
}
resource "aws_sagemaker_code_repository" "code" {
  code_repository_name = "debugger-code"
  git_config { repository_url = "https://example.com/debugger.git" }
}
resource "aws_sagemaker_notebook_instance_lifecycle_configuration" "notebook" {
  name     = "debugger"
  on_start = base64encode("echo start")
}
resource "aws_sagemaker_notebook_instance" "notebook" {
  name                    = "debugger"
  role_arn                = aws_iam_role.jobs.arn
  instance_type           = "ml.t3.medium"
  lifecycle_config_name   = aws_sagemaker_notebook_instance_lifecycle_configuration.notebook.name
  default_code_repository = aws_sagemaker_code_repository.code.code_repository_name
}
resource "aws_sagemaker_studio_lifecycle_config" "studio" {
  studio_lifecycle_config_name     = "debugger"
  studio_lifecycle_config_app_type = "JupyterLab"
  studio_lifecycle_config_content  = base64encode("echo start")
}
resource "aws_sagemaker_domain" "studio" {
  domain_name = "debugger"
  auth_mode   = "IAM"
  vpc_id      = "vpc-0123456789abcdef0"
  subnet_ids  = ["subnet-0123456789abcdef0"]
  default_user_settings { execution_role = aws_iam_role.jobs.arn }
}
resource "aws_sagemaker_user_profile" "someone" {
  domain_id         = aws_sagemaker_domain.studio.id
  user_profile_name = "someone"
}
resource "aws_sagemaker_space" "shared" {
  domain_id  = aws_sagemaker_domain.studio.id
  space_name = "shared"
}
resource "aws_sagemaker_data_quality_job_definition" "quality" {
  name     = "debugger"
  role_arn = aws_iam_role.jobs.arn
  data_quality_app_specification { image_uri = data.aws_sagemaker_prebuilt_ecr_image.monitor.registry_path }
  data_quality_job_input {
    endpoint_input { endpoint_name = aws_sagemaker_endpoint.model.name }
  }
  data_quality_job_output_config {
    monitoring_outputs {
      s3_output { s3_uri = "s3://${aws_s3_bucket.runs.id}/quality" }
    }
  }
  job_resources {
    cluster_config {
      instance_count    = 1
      instance_type     = "ml.m5.large"
      volume_size_in_gb = 20
    }
  }
}
data "aws_sagemaker_prebuilt_ecr_image" "monitor" { repository_name = "sagemaker-model-monitor-analyzer" }
resource "aws_sagemaker_monitoring_schedule" "quality" {
  name = "debugger"
  monitoring_schedule_config {
    monitoring_job_definition_name = aws_sagemaker_data_quality_job_definition.quality.name
    monitoring_type                = "DataQuality"
    schedule_config { schedule_expression = "cron(0 * ? * * *)" }
  }
}
