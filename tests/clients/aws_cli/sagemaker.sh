# Jobs and what is around them. One job trains; the tuning job and the pipeline fail at once, as their image is nobody's.
source head.sh
image=pytorch-training:2.13.0-cpu-py311
nobodys=$account.dkr.ecr.us-east-1.amazonaws.com/nobodys:1
cluster='{"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}'
aws s3 mb s3://walk-sagemaker
aws iam create-role --role-name Walk --assume-role-policy-document '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}]}'

create() {
  aws sagemaker create-training-job --training-job-name "$1" --role-arn "$role" \
    --algorithm-specification "{\"TrainingImage\": \"$image\", \"TrainingInputMode\": \"File\", \"ContainerEntrypoint\": [\"python3\", \"-c\", \"$2\"], \"MetricDefinitions\": [{\"Name\": \"loss\", \"Regex\": \"loss=(.*)\"}]}" \
    --output-data-config S3OutputPath=s3://walk-sagemaker/out --resource-config "$cluster" \
    --stopping-condition MaxRuntimeInSeconds=600 --hyper-parameters rate=0.1,size=3 --tags Key=team,Value=walk \
    --enable-network-isolation
}
# The CLI's own waiters ask every minute or two.
until_ended() {
  until_prints 'Completed|Failed|Stopped' aws sagemaker "describe-$1-job" "--$1-job-name" "$2" --query "$3" --output text
  aws sagemaker wait "$1-job-completed-or-stopped" "--$1-job-name" "$2"
}
create walk-trains "print('loss=0.5')"
create walk-goes-on "import signal, time; signal.signal(15, lambda *_: exit()); time.sleep(500)"
refused ResourceInUse create walk-trains "print(1)"
until_ended training walk-trains TrainingJobStatus
is "$(aws sagemaker describe-training-job --training-job-name walk-trains --query 'FinalMetricDataList[0].Value')" 0.5
arn=$(aws sagemaker describe-training-job --training-job-name walk-trains --query TrainingJobArn --output text)
is "$(aws sagemaker list-training-jobs --name-contains walk- --sort-by Name --sort-order Ascending --query 'TrainingJobSummaries[].TrainingJobName' --output text)" $'walk-goes-on\twalk-trains'
aws sagemaker list-training-jobs --status-equals Completed --creation-time-after 2020-01-01 --page-size 1
aws sagemaker list-tags --resource-arn "$arn"
aws sagemaker add-tags --resource-arn "$arn" --tags Key=stage,Value=two
is "$(aws sagemaker list-tags --resource-arn "$arn" --query 'length(Tags)')" 2
aws sagemaker delete-tags --resource-arn "$arn" --tag-keys stage
is "$(aws sagemaker search --resource TrainingJob --search-expression 'Filters=[{Name=HyperParameters.rate,Operator=Equals,Value=0.1}]' --query 'length(Results)')" 2
aws sagemaker get-search-suggestions --resource TrainingJob --suggestion-query PropertyNameQuery={PropertyNameHint=Hyper}
refused ValidationException aws sagemaker update-training-job --training-job-name walk-trains --profiler-config DisableProfiler=true
until_prints Training aws sagemaker describe-training-job --training-job-name walk-goes-on --query SecondaryStatus --output text
aws sagemaker update-training-job --training-job-name walk-goes-on --profiler-config ProfilingIntervalInMilliseconds=200,S3OutputPath=s3://walk-sagemaker/profile
aws sagemaker stop-training-job --training-job-name walk-goes-on
until_ended training walk-goes-on TrainingJobStatus
refused ValidationException aws sagemaker describe-training-job --training-job-name walk-nobody

aws sagemaker create-processing-job --processing-job-name walk-processes --role-arn "$role" --processing-resources "{\"ClusterConfig\": $cluster}" --app-specification "{\"ImageUri\": \"$image\", \"ContainerEntrypoint\": [\"python3\", \"-c\", \"print(1)\"]}" --environment A=b
until_ended processing walk-processes ProcessingJobStatus
is "$(aws sagemaker describe-processing-job --processing-job-name walk-processes --query ProcessingJobStatus --output text)" Completed
aws sagemaker list-processing-jobs --status-equals Completed
refused ValidationException aws sagemaker stop-processing-job --processing-job-name walk-processes

aws sagemaker create-hyper-parameter-tuning-job --hyper-parameter-tuning-job-name walk-tunes --hyper-parameter-tuning-job-config '{"Strategy": "Random", "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"}, "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1}, "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0", "MaxValue": "1"}]}}' --training-job-definition "{\"RoleArn\": \"$role\", \"AlgorithmSpecification\": {\"TrainingImage\": \"$nobodys\", \"TrainingInputMode\": \"File\", \"MetricDefinitions\": [{\"Name\": \"loss\", \"Regex\": \"loss=(.*)\"}]}, \"OutputDataConfig\": {\"S3OutputPath\": \"s3://walk-sagemaker/out\"}, \"ResourceConfig\": $cluster, \"StoppingCondition\": {\"MaxRuntimeInSeconds\": 60}}"
aws sagemaker describe-hyper-parameter-tuning-job --hyper-parameter-tuning-job-name walk-tunes
aws sagemaker list-hyper-parameter-tuning-jobs --name-contains walk
aws sagemaker stop-hyper-parameter-tuning-job --hyper-parameter-tuning-job-name walk-tunes
aws sagemaker list-training-jobs-for-hyper-parameter-tuning-job --hyper-parameter-tuning-job-name walk-tunes

steps='{"Version": "2020-12-01", "Parameters": [{"Name": "Said", "Type": "String", "DefaultValue": "x"}], "Steps": [{"Name": "End", "Type": "Fail", "Arguments": {"ErrorMessage": {"Get": "Parameters.Said"}}}]}'
aws sagemaker create-pipeline --pipeline-name walk-pipeline --pipeline-display-name Walk --pipeline-definition "$steps" --role-arn "$role" --client-request-token "$(printf t%.0s {1..32})"
execution=$(aws sagemaker start-pipeline-execution --pipeline-name walk-pipeline --pipeline-parameters Name=Said,Value=ended --query PipelineExecutionArn --output text)
until_prints Failed aws sagemaker describe-pipeline-execution --pipeline-execution-arn "$execution" --query PipelineExecutionStatus --output text
is "$(aws sagemaker list-pipeline-execution-steps --pipeline-execution-arn "$execution" --query 'PipelineExecutionSteps[0].FailureReason' --output text)" ended
aws sagemaker list-pipeline-executions --pipeline-name walk-pipeline
aws sagemaker list-pipeline-parameters-for-execution --pipeline-execution-arn "$execution"
aws sagemaker describe-pipeline-definition-for-execution --pipeline-execution-arn "$execution"
aws sagemaker retry-pipeline-execution --pipeline-execution-arn "$execution" --client-request-token "$(printf r%.0s {1..32})"
aws sagemaker describe-pipeline --pipeline-name walk-pipeline
aws sagemaker update-pipeline --pipeline-name walk-pipeline --pipeline-description changed
aws sagemaker list-pipelines --pipeline-name-prefix walk
until_prints Failed aws sagemaker describe-pipeline-execution --pipeline-execution-arn "$execution" --query PipelineExecutionStatus --output text
aws sagemaker delete-pipeline --pipeline-name walk-pipeline --client-request-token "$(printf d%.0s {1..32})"

aws sagemaker create-experiment --experiment-name walk-experiment --description d
aws sagemaker create-trial --trial-name walk-trial --experiment-name walk-experiment
aws sagemaker create-trial-component --trial-component-name walk-component --parameters 'rate={NumberValue=0.1}'
aws sagemaker associate-trial-component --trial-component-name walk-component --trial-name walk-trial
aws sagemaker update-trial-component --trial-component-name walk-component --display-name Component
refused ValidationException aws sagemaker create-experiment --experiment-name walk-experiment
aws sagemaker describe-experiment --experiment-name walk-experiment
aws sagemaker describe-trial --trial-name walk-trial
is "$(aws sagemaker describe-trial-component --trial-component-name walk-component --query Parameters.rate.NumberValue)" 0.1
aws sagemaker list-experiments
aws sagemaker list-trials --experiment-name walk-experiment
is "$(aws sagemaker list-trial-components --trial-name walk-trial --query 'TrialComponentSummaries[0].DisplayName' --output text)" Component
is "$(aws sagemaker search --resource ExperimentTrialComponent --search-expression 'Filters=[{Name=Parents.ExperimentName,Operator=Equals,Value=walk-experiment}]' --query 'length(Results)')" 1
aws sagemaker disassociate-trial-component --trial-component-name walk-component --trial-name walk-trial
aws sagemaker delete-trial-component --trial-component-name walk-component
aws sagemaker delete-trial --trial-name walk-trial
aws sagemaker delete-experiment --experiment-name walk-experiment

aws sagemaker create-model --model-name walk-model --execution-role-arn "$role" --primary-container "Image=$nobodys,ModelDataUrl=s3://walk-sagemaker/m.tar.gz"
aws sagemaker describe-model --model-name walk-model
aws sagemaker list-models --name-contains walk
aws sagemaker create-endpoint-config --endpoint-config-name walk-config --production-variants VariantName=a,ModelName=walk-model,InitialInstanceCount=1,InstanceType=ml.m5.large
aws sagemaker create-endpoint --endpoint-name walk-endpoint --endpoint-config-name walk-config
aws sagemaker wait endpoint-in-service --endpoint-name walk-endpoint
aws sagemaker describe-endpoint --endpoint-name walk-endpoint
aws sagemaker list-endpoints
aws sagemaker list-endpoint-configs
aws sagemaker delete-endpoint --endpoint-name walk-endpoint
aws sagemaker delete-endpoint-config --endpoint-config-name walk-config
aws sagemaker delete-model --model-name walk-model
aws sagemaker create-model-package-group --model-package-group-name walk-group
package=$(aws sagemaker create-model-package --model-package-group-name walk-group --inference-specification "{\"Containers\": [{\"Image\": \"$nobodys\"}], \"SupportedContentTypes\": [\"text/csv\"], \"SupportedResponseMIMETypes\": [\"text/csv\"]}" --model-approval-status PendingManualApproval --query ModelPackageArn --output text)
aws sagemaker update-model-package --model-package-arn "$package" --model-approval-status Approved
is "$(aws sagemaker describe-model-package --model-package-name "$package" --query ModelApprovalStatus --output text)" Approved
aws sagemaker describe-model-package-group --model-package-group-name walk-group
aws sagemaker list-model-packages --model-package-group-name walk-group
aws sagemaker list-model-package-groups
aws sagemaker delete-model-package --model-package-name "$package"
aws sagemaker delete-model-package-group --model-package-group-name walk-group

is "$(aws logs filter-log-events --log-group-name /aws/sagemaker/TrainingJobs --log-stream-name-prefix walk-trains --query 'events[].message' --output text)" loss=0.5
stream=$(aws logs describe-log-streams --log-group-name /aws/sagemaker/TrainingJobs --log-stream-name-prefix walk-trains --query 'logStreams[0].logStreamName' --output text)
is "$(aws logs get-log-events --log-group-name /aws/sagemaker/TrainingJobs --log-stream-name "$stream" --start-from-head --query 'events[0].message' --output text)" loss=0.5
aws logs describe-log-groups --log-group-name-prefix /aws/sagemaker
aws cloudwatch list-metrics --namespace /aws/sagemaker/TrainingJobs
if [[ $(aws --version) == aws-cli/2* ]]; then
  is "$(aws logs tail /aws/sagemaker/TrainingJobs --log-stream-name-prefix walk-trains --format short | tail -c 9)" loss=0.5
fi
