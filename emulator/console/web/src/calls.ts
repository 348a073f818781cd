// A job's request, written as calls that create the job again.

/** The same job as calls of boto3, the command line and the SDK. */
export function writeCalls(request: Record<string, unknown>): Record<string, string> {
  const json = JSON.stringify(request, null, 2);
  const again = `${String(request["TrainingJobName"] ?? "job").slice(0, 56)}-again`;
  const quoted = json.replaceAll("'", `'"'"'`);
  return {
    boto3: `import json\n\nimport boto3\n\nrequest = json.loads(r'''${json.replaceAll("'''", "\\u0027\\u0027\\u0027")}''')\nrequest["TrainingJobName"] = ${JSON.stringify(again)}\nboto3.client("sagemaker").create_training_job(**request)\n`,
    "AWS CLI": `aws sagemaker create-training-job --training-job-name ${again} --cli-input-json '${quoted}'\n`,
    SDK: writeEstimator(request),
  };
}

function writeEstimator(request: Record<string, unknown>): string {
  const algorithm = (request["AlgorithmSpecification"] ?? {}) as Record<string, unknown>;
  const resources = (request["ResourceConfig"] ?? {}) as Record<string, unknown>;
  const output = (request["OutputDataConfig"] ?? {}) as Record<string, unknown>;
  const hook = request["DebugHookConfig"] as
    | {
        S3OutputPath?: string;
        HookParameters?: unknown;
        CollectionConfigurations?: { CollectionName: string; CollectionParameters?: unknown }[];
      }
    | undefined;
  const rules = (request["DebugRuleConfigurations"] ?? []) as {
    RuleConfigurationName: string;
    RuleEvaluatorImage: string;
    RuleParameters?: Record<string, string>;
  }[];
  const channels = (request["InputDataConfig"] ?? []) as {
    ChannelName: string;
    DataSource: { S3DataSource?: { S3Uri: string } };
  }[];
  const inputs = Object.fromEntries(
    channels.map((each) => [each.ChannelName, each.DataSource.S3DataSource?.S3Uri ?? ""]),
  );
  const lines = [
    "from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule",
    "from sagemaker.estimator import Estimator",
    "",
    "estimator = Estimator(",
    `    image_uri=${writePython(String(algorithm["TrainingImage"] ?? ""))},`,
    `    role=${writePython(request["RoleArn"])},`,
    `    instance_count=${String(resources["InstanceCount"] ?? 1)},`,
    `    instance_type=${writePython(resources["InstanceType"] ?? "ml.m5.large")},`,
    `    output_path=${writePython(output["S3OutputPath"])},`,
    `    hyperparameters=${writePython(request["HyperParameters"])},`,
  ];
  const metrics = (algorithm["MetricDefinitions"] ?? []) as unknown[];
  if (metrics.length) lines.push(`    metric_definitions=${writePython(metrics)},`);
  const seconds = ((request["StoppingCondition"] ?? {}) as Record<string, unknown>)["MaxRuntimeInSeconds"];
  if (seconds) lines.push(`    max_run=${writePython(seconds)},`);
  if (hook) {
    lines.push(
      "    debugger_hook_config=DebuggerHookConfig(",
      `        s3_output_path=${writePython(hook.S3OutputPath)},`,
      `        hook_parameters=${writePython(hook.HookParameters)},`,
      "        collection_configs=[",
    );
    for (const each of hook.CollectionConfigurations ?? [])
      lines.push(
        `            CollectionConfig(${writePython(each.CollectionName)}, ${writePython(each.CollectionParameters)}),`,
      );
    lines.push("        ],", "    ),");
  } else lines.push("    debugger_hook_config=False,");
  if (rules.length) {
    lines.push("    rules=[");
    for (const each of rules) {
      // Which rule is invoked stands in the parameters: the SDK takes it by itself only together with a source.
      lines.push(
        `        Rule.custom(${writePython(each.RuleConfigurationName)}, image_uri=${writePython(each.RuleEvaluatorImage)}, instance_type="ml.t3.medium", volume_size_in_gb=30,`,
        `                    rule_parameters=${writePython(each.RuleParameters)}),`,
      );
    }
    lines.push("    ],");
  }
  return [...lines, ")", `estimator.fit(${Object.keys(inputs).length ? writePython(inputs) : ""})`, ""].join("\n");
}

/** What JSON holds, as Python writes it; what is not there is an empty dictionary. */
function writePython(value: unknown = {}): string {
  if (Array.isArray(value)) return `[${value.map((each) => writePython(each)).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, each]) => `${JSON.stringify(key)}: ${writePython(each)}`)
      .join(", ")}}`;
  return value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
}
