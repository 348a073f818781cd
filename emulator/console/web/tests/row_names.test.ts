import assert from "node:assert/strict";
import { test } from "node:test";

import { chooseLabelled, shortenNames } from "../src/row_names.ts";

test("of what all names begin with as little as needed is left out, up to a separator", () => {
  const layers = ["gradient/Net_layers.10.bias", "gradient/Net_layers.12.bias"];
  assert.deepEqual(shortenNames(layers, 27), layers);
  assert.deepEqual(shortenNames(layers, 26), ["…Net_layers.10.bias", "…Net_layers.12.bias"]);
  assert.deepEqual(shortenNames(layers, 17), ["…layers.10.bias", "…layers.12.bias"]);
  assert.deepEqual(shortenNames(layers, 12), ["…10.bias", "…12.bias"]);
  assert.deepEqual(shortenNames(["tensor/1", "tensor/2"], 26), ["tensor/1", "tensor/2"]);
  assert.deepEqual(shortenNames(["f1", "f2"], 26), ["f1", "f2"]);
  assert.deepEqual(shortenNames(["label 0", "label 1"], 26), ["label 0", "label 1"]);
  assert.deepEqual(shortenNames(["gradient/only.weight"], 26), ["gradient/only.weight"]);
  assert.deepEqual(shortenNames([], 26), []);
});

test("a long name keeps its end, and more of that than of its start", () => {
  const [short = ""] = shortenNames(["encoder_".repeat(9) + "7.weight"], 26);
  assert.equal(short.length, 26);
  assert.ok(short.startsWith("encoder_") && short.endsWith("7.weight"));
});

test("as many rows are labelled as there is room for, the first among them", () => {
  assert.deepEqual(chooseLabelled(3, 160, 14), [0, 1, 2]);
  assert.equal(chooseLabelled(502, 700, 14).length, 46);
  assert.deepEqual(chooseLabelled(502, 700, 14).slice(0, 2), [0, 11]);
});
