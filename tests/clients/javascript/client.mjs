// A script of somebody's: no line of it knows an emulator. It prints what it found as one line of JSON.
import net from "node:net";

import { CloudWatchLogsClient, DescribeLogStreamsCommand, paginateFilterLogEvents } from "@aws-sdk/client-cloudwatch-logs";
import { EventBridgeClient, PutRuleCommand, PutTargetsCommand, TestEventPatternCommand } from "@aws-sdk/client-eventbridge";
import {
  CreateBucketCommand, DeleteObjectsCommand, GetBucketLocationCommand, GetObjectCommand, paginateListObjectsV2,
  PutObjectCommand, S3Client, waitUntilObjectExists,
} from "@aws-sdk/client-s3";
import {
  CreateTrainingJobCommand, DescribeTrainingJobCommand, paginateListTrainingJobs, SageMakerClient,
  StopTrainingJobCommand, waitUntilTrainingJobCompletedOrStopped,
} from "@aws-sdk/client-sagemaker";

const connected = new Set();
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...given) {
  this.once("connect", () => connected.add(this.remoteAddress));
  return connect.apply(this, given);
};

const [port, image, script] = process.argv.slice(2);
const found = {};
const nameOfError = (asked) => asked.then(() => null, (error) => error.name);
const collect = async (pages, read) => {
  const pagesRead = [];
  for await (const page of pages) pagesRead.push(read(page));
  return pagesRead;
};

// Buckets in the path, in the host's name, and at endpoints of AWS's own.
const hosts = {};
const s3 = (name, settings) => {
  const client = new S3Client(settings);
  client.middlewareStack.add(
    (next) => (input) => ((hosts[name] = `${input.request.protocol}//${input.request.hostname}`), next(input)),
    { step: "finalizeRequest" },
  );
  return client;
};
const inPath = s3("path");
const inHost = s3("host", { endpoint: `http://localhost:${port}` });
const ofAws = s3("aws", { region: "eu-west-1", endpoint: "https://s3.eu-west-1.amazonaws.com" });
await inPath.send(new CreateBucketCommand({ Bucket: "of-javascript" }));
await inHost.send(new PutObjectCommand({ Bucket: "of-javascript", Key: "data/a b.csv", Body: "1,2" }));
await waitUntilObjectExists({ client: inPath, maxWaitTime: 60 }, { Bucket: "of-javascript", Key: "data/a b.csv" });
for (const Key of ["data/b.csv", "data/ü.csv"]) {
  await ofAws.send(new PutObjectCommand({ Bucket: "of-javascript", Key, Body: new TextEncoder().encode(Key) }));
}
const read = await inPath.send(new GetObjectCommand({ Bucket: "of-javascript", Key: "data/ü.csv" }));
found.read = await read.Body.transformToString();
found.pages = await collect(
  paginateListObjectsV2({ client: inHost, pageSize: 2 }, { Bucket: "of-javascript", Prefix: "data/" }),
  (page) => page.Contents.map((each) => each.Key),
);
const deleted = await inHost.send(
  new DeleteObjectsCommand({ Bucket: "of-javascript", Delete: { Objects: [{ Key: "data/b.csv" }] } }),
);
found.deleted = deleted.Deleted.map((each) => each.Key);
found.missing = await nameOfError(inHost.send(new GetObjectCommand({ Bucket: "of-javascript", Key: "data/b.csv" })));
await ofAws.send(
  new CreateBucketCommand({
    Bucket: "of-ireland", CreateBucketConfiguration: { LocationConstraint: "eu-west-1" },
  }),
);
found.location = (await inPath.send(new GetBucketLocationCommand({ Bucket: "of-ireland" }))).LocationConstraint;
found.hosts = hosts;

// Events of jobs go to a log group.
const events = new EventBridgeClient();
const logs = new CloudWatchLogsClient();
const { RuleArn } = await events.send(
  new PutRuleCommand({
    Name: "javascript",
    EventPattern: JSON.stringify({
      source: ["aws.sagemaker"], detail: { TrainingJobName: [{ prefix: "js-" }], TrainingJobStatus: ["Completed", "Stopped"] },
    }),
  }),
);
await events.send(
  new PutTargetsCommand({
    Rule: "javascript",
    Targets: [{ Id: "logs", Arn: "arn:aws:logs:us-east-1:123456789012:log-group:/aws/events/javascript" }],
  }),
);
const pattern = { EventPattern: '{"detail": {"n": [{"numeric": [">", 1]}]}}' };
const event = { id: "1", account: "1", source: "s", time: "2026-01-01T00:00:00Z", region: "r", resources: [], "detail-type": "t" };
found.events = [
  RuleArn,
  (await events.send(new TestEventPatternCommand({ ...pattern, Event: JSON.stringify({ ...event, detail: { n: 2 } }) }))).Result,
  await nameOfError(events.send(new PutRuleCommand({ Name: "bad", EventPattern: "{" }))),
];

// Jobs, with a hook and a rule.
const sagemaker = new SageMakerClient();
const request = (TrainingJobName, source, more) => ({
  TrainingJobName,
  AlgorithmSpecification: {
    TrainingImage: image, TrainingInputMode: "File", ContainerEntrypoint: ["python3", "-c", source],
  },
  HyperParameters: { rate: "0.5" },
  InputDataConfig: [
    {
      ChannelName: "code",
      DataSource: { S3DataSource: { S3DataType: "S3Prefix", S3Uri: "s3://of-javascript/code/" } },
    },
  ],
  RoleArn: "arn:aws:iam::123456789012:role/Training",
  OutputDataConfig: { S3OutputPath: "s3://of-javascript/output" },
  ResourceConfig: { InstanceType: "ml.m5.large", InstanceCount: 1, VolumeSizeInGB: 1 },
  StoppingCondition: { MaxRuntimeInSeconds: 900 },
  Tags: [{ Key: "by", Value: "javascript" }],
  ...more,
});
const debugged = {
  DebugHookConfig: {
    S3OutputPath: "s3://of-javascript/tensors",
    CollectionConfigurations: [{ CollectionName: "losses", CollectionParameters: { save_interval: "1" } }],
  },
  DebugRuleConfigurations: [
    {
      RuleConfigurationName: "Falls",
      RuleEvaluatorImage: "sagemaker-debugger-rules:latest",
      RuleParameters: { rule_to_invoke: "LossNotDecreasing", num_steps: "2" },
    },
  ],
};
await inPath.send(new PutObjectCommand({ Bucket: "of-javascript", Key: "code/train.py", Body: script }));
const channel = "import os; exec(open(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml') + '/input/data/code/train.py').read())";
const { TrainingJobArn } = await sagemaker.send(new CreateTrainingJobCommand(request("js-judged", channel, debugged)));
await sagemaker.send(new CreateTrainingJobCommand(request("js-stopped", "import time; time.sleep(600)")));
await sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: "js-stopped" }));
const describe = (TrainingJobName) => sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName }));
for (const TrainingJobName of ["js-judged", "js-stopped"]) {
  await waitUntilTrainingJobCompletedOrStopped(
    { client: sagemaker, minDelay: 1, maxDelay: 2, maxWaitTime: 200 }, { TrainingJobName },
  );
}
let judged;
do {
  await new Promise((resolve) => setTimeout(resolve, 200));
  judged = await describe("js-judged");
} while (judged.DebugRuleEvaluationStatuses.some((each) => ["InProgress", "Stopping"].includes(each.RuleEvaluationStatus)));
found.jobs = [
  TrainingJobArn, judged.TrainingJobStatus, (await describe("js-stopped")).TrainingJobStatus,
  judged.CreationTime instanceof Date,
];
found.rules = judged.DebugRuleEvaluationStatuses.map((each) => [each.RuleConfigurationName, each.RuleEvaluationStatus]);
found.listed = await collect(
  paginateListTrainingJobs({ client: sagemaker, pageSize: 1 }, { NameContains: "js-", SortBy: "Name", SortOrder: "Ascending" }),
  (page) => page.TrainingJobSummaries.map((each) => each.TrainingJobName),
);
found.unknown = await nameOfError(describe("nobody-made"));
const china = new SageMakerClient({ region: "cn-north-1" });
await new S3Client({ region: "cn-north-1" }).send(
  new CreateBucketCommand({
    Bucket: "of-china", CreateBucketConfiguration: { LocationConstraint: "cn-north-1" },
  }),
);
const there = { InputDataConfig: undefined, OutputDataConfig: { S3OutputPath: "s3://of-china/output" } };
const elsewhere = await china.send(new CreateTrainingJobCommand(request("js-elsewhere", "pass", there)));
found.elsewhere = await collect(paginateListTrainingJobs({ client: china }, {}), (page) =>
  page.TrainingJobSummaries.map((each) => each.TrainingJobName),
);
found.elsewhere.push(elsewhere.TrainingJobArn);

// What a job said, and what was said of it.
const messages = (logGroupName, more) =>
  collect(paginateFilterLogEvents({ client: logs }, { logGroupName, ...more }), (page) =>
    page.events.map((each) => each.message),
  ).then((pages) => pages.flat());
const group = "/aws/sagemaker/TrainingJobs";
const { logStreams } = await logs.send(
  new DescribeLogStreamsCommand({ logGroupName: group, logStreamNamePrefix: "js-judged/" }),
);
found.streams = logStreams.map((each) => each.logStreamName);
found.said = (await messages(group, { logStreamNamePrefix: "js-judged/" })).filter((each) => each.startsWith("SAID"));
do {
  await new Promise((resolve) => setTimeout(resolve, 200));
  found.told = await messages("/aws/events/javascript");
} while (found.told.length < 2);
found.told = found.told.map((each) => JSON.parse(each).detail.TrainingJobName).sort();

// A connection of AWS's that no client makes.
found.refused = await fetch("https://of-javascript.s3.amazonaws.com/data/").catch((error) => error.cause.message);
found.connected = [...connected].sort();
console.log(`FOUND ${JSON.stringify(found)}`);
