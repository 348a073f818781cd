# Buckets and objects.
source head.sh
aws s3 mb s3://walk-cli
mkdir -p folder/deep
echo one > folder/one.txt
echo two > "folder/deep/zwei ü.txt"
head -c 20000000 /dev/zero > folder/large.bin
aws s3 cp folder/one.txt s3://walk-cli/one.txt --metadata by=cli --content-type text/plain --storage-class STANDARD_IA
echo piped | aws s3 cp - s3://walk-cli/piped.txt
is "$(aws s3 cp s3://walk-cli/piped.txt -)" piped
aws s3 sync folder s3://walk-cli/data --exclude "*.bin"
aws s3 cp folder/large.bin s3://walk-cli/large.bin --no-progress
aws s3 cp s3://walk-cli/large.bin back.bin --no-progress
cmp folder/large.bin back.bin
is "$(aws s3 sync folder s3://walk-cli/data --exclude '*.bin')" ""
aws s3 sync s3://walk-cli/data back
cmp "folder/deep/zwei ü.txt" "back/deep/zwei ü.txt"
aws s3 ls
aws s3 ls s3://walk-cli/ --recursive --human-readable --summarize
aws s3 mv s3://walk-cli/piped.txt s3://walk-cli/moved.txt
aws s3 cp s3://walk-cli/data s3://walk-cli/copy --recursive
aws s3 presign s3://walk-cli/moved.txt --expires-in 60
aws s3 rm s3://walk-cli/copy --recursive
aws s3 website s3://walk-cli --index-document index.html
refused 404 aws s3 cp s3://walk-cli/nobody nobody

aws s3api head-bucket --bucket walk-cli
aws s3api head-object --bucket walk-cli --key one.txt
is "$(aws s3api head-object --bucket walk-cli --key one.txt --query Metadata.by --output text)" cli
aws s3api list-buckets --query 'Buckets[].Name'
is "$(aws s3api list-objects-v2 --bucket walk-cli --prefix data/ --page-size 1 --query 'length(Contents)')" 2
is "$(aws s3api list-objects-v2 --bucket walk-cli --max-items 1 --query 'length(Contents)')" 1
aws s3api put-bucket-versioning --bucket walk-cli --versioning-configuration Status=Enabled
aws s3api put-object --bucket walk-cli --key versioned --body folder/one.txt --server-side-encryption AES256
aws s3api put-object --bucket walk-cli --key versioned --body folder/one.txt --checksum-algorithm SHA256
is "$(aws s3api list-object-versions --bucket walk-cli --prefix versioned --query 'length(Versions)')" 2
aws s3api get-object --bucket walk-cli --key versioned --range bytes=0-1 part
is "$(cat part)" on
aws s3api get-object-attributes --bucket walk-cli --key versioned --object-attributes ObjectSize ETag
aws s3api copy-object --bucket walk-cli --key copied --copy-source walk-cli/versioned
aws s3api put-object-tagging --bucket walk-cli --key copied --tagging 'TagSet=[{Key=a,Value=b}]'
is "$(aws s3api get-object-tagging --bucket walk-cli --key copied --query 'TagSet[0].Value' --output text)" b
aws s3api put-object-acl --bucket walk-cli --key copied --acl private
aws s3api get-object-acl --bucket walk-cli --key copied
aws s3api put-bucket-tagging --bucket walk-cli --tagging 'TagSet=[{Key=team,Value=walk}]'
aws s3api get-bucket-tagging --bucket walk-cli
aws s3api put-bucket-policy --bucket walk-cli --policy '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::walk-cli/denied/*"}]}'
aws s3api get-bucket-policy --bucket walk-cli --output text
refused AccessDenied aws s3api put-object --bucket walk-cli --key denied/x --body folder/one.txt
aws s3api delete-bucket-policy --bucket walk-cli
aws s3api put-bucket-lifecycle-configuration --bucket walk-cli --lifecycle-configuration '{"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "x/"}, "Expiration": {"Days": 1}}]}'
aws s3api get-bucket-lifecycle-configuration --bucket walk-cli
aws s3api put-bucket-cors --bucket walk-cli --cors-configuration '{"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}'
aws s3api get-bucket-cors --bucket walk-cli
aws s3api put-bucket-encryption --bucket walk-cli --server-side-encryption-configuration '{"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}'
aws s3api get-bucket-encryption --bucket walk-cli
aws s3api put-public-access-block --bucket walk-cli --public-access-block-configuration BlockPublicAcls=true
aws s3api get-public-access-block --bucket walk-cli
aws s3api get-bucket-location --bucket walk-cli
aws s3api put-bucket-notification-configuration --bucket walk-cli --notification-configuration '{"EventBridgeConfiguration": {}}'
aws s3api get-bucket-notification-configuration --bucket walk-cli
upload=$(aws s3api create-multipart-upload --bucket walk-cli --key parts --query UploadId --output text)
etag=$(aws s3api upload-part --bucket walk-cli --key parts --part-number 1 --upload-id "$upload" --body folder/large.bin --query ETag --output text)
aws s3api list-parts --bucket walk-cli --key parts --upload-id "$upload"
aws s3api list-multipart-uploads --bucket walk-cli
aws s3api complete-multipart-upload --bucket walk-cli --key parts --upload-id "$upload" --multipart-upload "{\"Parts\": [{\"PartNumber\": 1, \"ETag\": $etag}]}"
upload=$(aws s3api create-multipart-upload --bucket walk-cli --key parts --query UploadId --output text)
aws s3api abort-multipart-upload --bucket walk-cli --key parts --upload-id "$upload"
aws s3api delete-objects --bucket walk-cli --delete 'Objects=[{Key=copied},{Key=parts}],Quiet=true'
aws s3api wait object-not-exists --bucket walk-cli --key copied
refused NoSuchKey aws s3api get-object --bucket walk-cli --key nobody nobody
refused NoSuchBucket aws s3api list-objects-v2 --bucket walk-nobody
refused BucketNotEmpty aws s3api delete-bucket --bucket walk-cli
aws s3api put-bucket-versioning --bucket walk-cli --versioning-configuration Status=Suspended
aws s3api create-bucket --bucket walk-cli-eu --region eu-west-1 --create-bucket-configuration LocationConstraint=eu-west-1
aws s3 rb s3://walk-cli-eu --region eu-west-1
