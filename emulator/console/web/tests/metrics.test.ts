import assert from "node:assert/strict";
import { test } from "node:test";

import { findMode } from "../src/metric_names.ts";

test("a metric's name tells its mode", () => {
  assert.deepEqual(
    ["loss_TRAIN", "loss_EVAL", "train:loss", "validation:loss", "test_accuracy", "loss"].map(findMode),
    ["TRAIN", "EVAL", "TRAIN", "EVAL", "EVAL", undefined],
  );
});
