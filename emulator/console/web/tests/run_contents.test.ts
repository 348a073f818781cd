import assert from "node:assert/strict";
import { test } from "node:test";

import type { Run } from "../src/api_types.ts";
import {
  chooseCollection,
  chooseFirst,
  describeRun,
  findNamed,
  groupTensors,
  listImportances,
} from "../src/tensors/run_contents.ts";

function makeRun(tensors: string[], collections: Record<string, string[]> = {}): Run {
  return {
    steps: { count: 3, first: 0, last: 20 },
    modes: [],
    workers: ["w0"],
    ended: true,
    tensors: tensors.map((name) => ({ name, saved: ["value"] })),
    collections: Object.entries(collections).map(([name, each]) => ({ name, tensors: each, configuration: {} })),
    damaged: [],
    complete: true,
  };
}

test("a run is described in a sentence", () => {
  const run = makeRun(["a"]);
  assert.equal(describeRun(run), "1 tensors, 3 steps, 0 to 20.");
  const looked = { ...run, ended: false, complete: false };
  assert.equal(
    describeRun(looked),
    "1 tensors, about 3 steps, 0 to 20; more are coming. These numbers are estimated from a part of the steps.",
  );
  const empty = { ...run, tensors: [], steps: { count: 0, first: null, last: null } };
  assert.equal(describeRun(empty), "0 tensors, no steps yet.");
});

test("tensors are grouped by collection, those of none together, and all only where there is no other group", () => {
  const names = (run: Run): string[] => groupTensors(run).map((group) => group.name);
  assert.deepEqual(names(makeRun(["a", "b"], { all: ["a", "b"] })), ["all"]);
  assert.deepEqual(names(makeRun(["a", "b"], { all: ["a", "b"], losses: ["a"], empty: [] })), ["losses"]);
  assert.deepEqual(names(makeRun(["a", "b"], { losses: ["a"] })), ["losses", "in no collection"]);
  assert.deepEqual(names(makeRun([])), []);
});

test("a loss is shown at first, or else what there is", () => {
  assert.deepEqual(chooseFirst(makeRun([], { biases: ["b"], losses: ["l", "m"] })), ["l"]);
  assert.deepEqual(chooseFirst(makeRun([], { biases: ["b"], losses: [] })), ["b"]);
  assert.deepEqual(chooseFirst(makeRun(["a"])), []);
});

test("labels are found in their collection, or by their name", () => {
  assert.equal(findNamed(makeRun(["LabelTensor", "y"], { labels: ["y"] }), "labels"), "y");
  assert.equal(findNamed(makeRun(["LabelTensor", "y"]), "labels"), "LabelTensor");
  assert.equal(findNamed(makeRun(["y"]), "predictions"), "");
});

test("a collection without tensors gives way to one that has several", () => {
  const run = makeRun(["a", "b"], { gradients: [], losses: ["a"], weights: ["a", "b"] });
  assert.equal(chooseCollection(run, "gradients"), "weights");
  assert.equal(chooseCollection(run, "losses"), "losses");
  assert.equal(chooseCollection(makeRun([]), "gradients"), "");
});

test("importances are told by the names of XGBoost's tensors", () => {
  const run = makeRun([
    "feature_importance/gain/f0",
    "feature_importance/gain/f1",
    "feature_importance/weight/f0",
    "x",
  ]);
  assert.deepEqual(listImportances(run), ["gain", "weight"]);
});
