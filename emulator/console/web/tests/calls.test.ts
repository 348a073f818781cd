import assert from "node:assert/strict";
import { test } from "node:test";

import { writeCalls } from "../src/calls.ts";

const REQUEST = {
  TrainingJobName: "digits",
  RoleArn: "arn",
  AlgorithmSpecification: { TrainingImage: "image" },
  HyperParameters: { quoted: "'null':true" },
  DebugRuleConfigurations: [
    {
      RuleConfigurationName: "Mine",
      RuleEvaluatorImage: "rules",
      RuleParameters: { rule_to_invoke: "DeadRelu", threshold: "1" },
    },
  ],
};

test("the SDK's call gives rule_to_invoke as a parameter, which the SDK takes without a source", () => {
  const call = writeCalls(REQUEST)["SDK"] ?? "";
  assert.ok(call.includes(`rule_parameters={"rule_to_invoke": "DeadRelu", "threshold": "1"}`));
  assert.ok(!call.includes("rule_to_invoke="));
});

test("words of JSON within a text stay as they are", () => {
  assert.ok((writeCalls(REQUEST)["SDK"] ?? "").includes(`hyperparameters={"quoted": "'null':true"}`));
});
