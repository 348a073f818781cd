# Events, queues, topics, functions, alarms, and the services that hold names and secrets.
source head.sh
aws sqs create-queue --queue-name walk
queue=$(aws sqs get-queue-url --queue-name walk --query QueueUrl --output text)
arn=$(aws sqs get-queue-attributes --queue-url "$queue" --attribute-names QueueArn --query Attributes.QueueArn --output text)
aws sqs set-queue-attributes --queue-url "$queue" --attributes VisibilityTimeout=1
aws sqs list-queues --queue-name-prefix walk
aws sqs send-message --queue-url "$queue" --message-body hello
handle=$(aws sqs receive-message --queue-url "$queue" --wait-time-seconds 5 --query 'Messages[0].ReceiptHandle' --output text)
aws sqs change-message-visibility --queue-url "$queue" --receipt-handle "$handle" --visibility-timeout 5
aws sqs delete-message --queue-url "$queue" --receipt-handle "$handle"
aws sqs send-message-batch --queue-url "$queue" --entries Id=a,MessageBody=a Id=b,MessageBody=b
aws sqs tag-queue --queue-url "$queue" --tags team=walk
aws sqs list-queue-tags --queue-url "$queue"
aws sqs purge-queue --queue-url "$queue"

rule=$(aws events put-rule --name walk --event-pattern '{"source": ["walk"]}' --query RuleArn --output text)
is "$(aws events put-targets --rule walk --targets "Id=q,Arn=$arn" --query FailedEntryCount)" 0
aws events describe-rule --name walk
aws events list-rules --name-prefix walk
aws events list-targets-by-rule --rule walk
aws events list-rule-names-by-target --target-arn "$arn"
is "$(aws events test-event-pattern --event-pattern '{"n": [3]}' --event '{"id": "1", "account": "1", "source": "s", "time": "2025-01-01T00:00:00Z", "region": "us-east-1", "resources": [], "detail-type": "t", "detail": {}, "n": 3.0}' --query Result)" true
is "$(aws events put-events --entries 'Source=walk,DetailType=t,Detail="{\"a\": 1}"' --query FailedEntryCount)" 0
is "$(aws sqs receive-message --queue-url "$queue" --wait-time-seconds 20 --query 'Messages[0].Body' --output text | grep -c '"source": *"walk"')" 1
aws events tag-resource --resource-arn "$rule" --tags Key=a,Value=b
aws events list-tags-for-resource --resource-arn "$rule"
aws events disable-rule --name walk
aws events enable-rule --name walk
aws events list-event-buses
refused ResourceNotFoundException aws events describe-rule --name walk-nobody
refused InvalidEventPatternException aws events put-rule --name walk-bad --event-pattern '{"source": "walk"}'
aws events remove-targets --rule walk --ids q
aws events delete-rule --name walk

topic=$(aws sns create-topic --name walk --query TopicArn --output text)
told=$(aws sqs create-queue --queue-name walk-told --query QueueUrl --output text)
subscription=$(aws sns subscribe --topic-arn "$topic" --protocol sqs --notification-endpoint "$arn-told" --query SubscriptionArn --output text)
aws sns publish --topic-arn "$topic" --message said --subject s
aws sns list-topics
aws sns list-subscriptions-by-topic --topic-arn "$topic"
aws sns get-topic-attributes --topic-arn "$topic"
is "$(aws sqs receive-message --queue-url "$told" --wait-time-seconds 20 --query 'Messages[0].Body' --output text | grep -c '"Message": *"said"')" 1
aws sqs delete-queue --queue-url "$told"
aws sns unsubscribe --subscription-arn "$subscription"
aws sns delete-topic --topic-arn "$topic"

aws iam create-role --role-name WalkFunction --assume-role-policy-document '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}'
aws iam attach-role-policy --role-name WalkFunction --policy-arn arn:aws:iam::aws:policy/AmazonSageMakerFullAccess
aws iam put-role-policy --role-name WalkFunction --policy-name p --policy-document '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
aws iam get-role --role-name WalkFunction
aws iam list-attached-role-policies --role-name WalkFunction
aws iam list-role-policies --role-name WalkFunction
aws iam get-role-policy --role-name WalkFunction --policy-name p
aws iam list-roles --query 'Roles[].RoleName'
aws sts assume-role --role-arn "arn:aws:iam::$account:role/WalkFunction" --role-session-name walk
python3 -c 'import zipfile; zipfile.ZipFile("f.zip", "w").writestr(zipfile.ZipInfo("m.py"), "def handler(event, context): return event\n")'
aws lambda create-function --function-name walk --runtime python3.11 --role "arn:aws:iam::$account:role/WalkFunction" --handler m.handler --zip-file fileb://f.zip --environment 'Variables={A=b}' --timeout 30
aws lambda wait function-active-v2 --function-name walk
printf '{"a": 1}' > event.json
aws lambda invoke --function-name walk --payload fileb://event.json answer.json
is "$(cat answer.json)" '{"a": 1}'
aws lambda get-function --function-name walk
aws lambda get-function-configuration --function-name walk
aws lambda list-functions --query 'Functions[].FunctionName'
aws lambda update-function-configuration --function-name walk --memory-size 256
aws lambda update-function-code --function-name walk --zip-file fileb://f.zip
version=$(aws lambda publish-version --function-name walk --query Version --output text)
aws lambda create-alias --function-name walk --name live --function-version "$version"
aws lambda list-versions-by-function --function-name walk
aws lambda list-aliases --function-name walk
aws lambda put-function-concurrency --function-name walk --reserved-concurrent-executions 1
aws lambda get-function-concurrency --function-name walk
aws lambda add-permission --function-name walk --statement-id s --action lambda:InvokeFunction --principal events.amazonaws.com
aws lambda get-policy --function-name walk
aws lambda create-event-source-mapping --function-name walk --event-source-arn "$arn"
aws lambda list-event-source-mappings --function-name walk
aws lambda tag-resource --resource "arn:aws:lambda:us-east-1:$account:function:walk" --tags a=b
refused ResourceNotFoundException aws lambda get-function --function-name walk-nobody
aws lambda delete-function --function-name walk

aws scheduler create-schedule --name walk --schedule-expression 'rate(1 day)' --flexible-time-window Mode=OFF --target "{\"Arn\": \"$arn\", \"RoleArn\": \"$role\"}"
aws scheduler get-schedule --name walk
aws scheduler list-schedules
aws scheduler delete-schedule --name walk
aws cloudwatch put-metric-alarm --alarm-name walk --namespace n --metric-name m --statistic Average --period 60 --evaluation-periods 1 --threshold 1 --comparison-operator GreaterThanThreshold
aws cloudwatch put-metric-data --namespace n --metric-name m --value 2
aws cloudwatch describe-alarms --alarm-names walk
aws cloudwatch set-alarm-state --alarm-name walk --state-value ALARM --state-reason r
aws cloudwatch list-metrics --namespace n
aws cloudwatch get-metric-statistics --namespace n --metric-name m --start-time 2020-01-01T00:00:00Z --end-time 2020-01-01T01:00:00Z --period 60 --statistics Sum
aws cloudwatch delete-alarms --alarm-names walk
aws logs create-log-group --log-group-name /walk
aws logs create-log-stream --log-group-name /walk --log-stream-name s
aws logs put-log-events --log-group-name /walk --log-stream-name s --log-events "timestamp=$(date +%s000),message=hello"
aws logs put-metric-filter --log-group-name /walk --filter-name f --filter-pattern hello --metric-transformations metricName=m,metricNamespace=n,metricValue=1
aws logs put-retention-policy --log-group-name /walk --retention-in-days 1
aws logs describe-metric-filters --log-group-name /walk
aws logs delete-log-group --log-group-name /walk

aws ecr create-repository --repository-name walk
aws ecr describe-repositories --repository-names walk
aws ecr list-images --repository-name walk
aws ecr delete-repository --repository-name walk --force
aws kms create-alias --alias-name alias/walk --target-key-id "$(aws kms create-key --query KeyMetadata.KeyId --output text)"
aws kms describe-key --key-id alias/walk
aws ssm put-parameter --name /walk --value v --type String
is "$(aws ssm get-parameter --name /walk --query Parameter.Value --output text)" v
aws secretsmanager create-secret --name walk --secret-string s
is "$(aws secretsmanager get-secret-value --secret-id walk --query SecretString --output text)" s
aws secretsmanager delete-secret --secret-id walk --force-delete-without-recovery
aws dynamodb create-table --table-name walk --attribute-definitions AttributeName=k,AttributeType=S --key-schema AttributeName=k,KeyType=HASH --billing-mode PAY_PER_REQUEST
aws dynamodb wait table-exists --table-name walk
aws dynamodb put-item --table-name walk --item '{"k": {"S": "a"}}'
aws dynamodb scan --table-name walk
aws dynamodb delete-table --table-name walk
aws ec2 describe-vpcs
aws sqs delete-queue --queue-url "$queue"
