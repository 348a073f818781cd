import assert from "node:assert/strict";
import { test } from "node:test";

import { chooseLabelled, shortenNames } from "../src/row_names.ts";

test("what all names begin with is left out, up to a separator", () => {
  assert.deepEqual(shortenNames(["gradient/Net_layers.10.bias", "gradient/Net_layers.12.bias"]), [
    "…10.bias",
    "…12.bias",
  ]);
  assert.deepEqual(shortenNames(["f1", "f2"]), ["f1", "f2"]);
  assert.deepEqual(shortenNames(["label 0", "label 1"]), ["label 0", "label 1"]);
  assert.deepEqual(shortenNames(["gradient/only.weight"]), ["gradient/only.weight"]);
  assert.deepEqual(shortenNames([]), []);
});

test("a long name keeps its end, and more of that than of its start", () => {
  const [short = ""] = shortenNames(["encoder_".repeat(9) + "7.weight"]);
  assert.equal(short.length, 26);
  assert.ok(short.startsWith("encoder_") && short.endsWith("7.weight"));
});

test("as many rows are labelled as there is room for, the first among them", () => {
  assert.deepEqual(chooseLabelled(3, 160, 14), [0, 1, 2]);
  assert.equal(chooseLabelled(502, 700, 14).length, 46);
  assert.deepEqual(chooseLabelled(502, 700, 14).slice(0, 2), [0, 11]);
});
