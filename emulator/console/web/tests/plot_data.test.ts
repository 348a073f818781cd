import assert from "node:assert/strict";
import { test } from "node:test";

import { coverDecades, keepDecades, smoothValues, spreadOne, stackLabels, writeCsv } from "../src/plot_data.ts";

test("smoothing begins at the first value and passes over what is not a number", () => {
  assert.deepEqual(smoothValues([4, 2, null, 8], 0), [4, 2, null, 8]);
  const smooth = smoothValues([4, null, 4, 4], 0.9);
  assert.deepEqual(
    smooth.map((value) => (value === null ? null : Math.round(value * 1e9) / 1e9)),
    [4, null, 4, 4],
  );
  const [, second = 0] = smoothValues([0, 10], 0.5) as number[];
  assert.ok(Math.abs(second - 20 / 3) < 1e-9);
});

test("CSV has a column for each line, and names that hold commas or begin like formulas do no harm", () => {
  const lines = [
    { label: 'loss, "mean"', at: [1, 3], values: [0.5, null] },
    { label: "=cmd()", at: [2, 3], values: [-1e-7, 2] },
  ];
  assert.equal(writeCsv("step", lines), `step,"loss, ""mean""",'=cmd()\r\n1,0.5,\r\n2,,-1e-7\r\n3,,2\r\n`);
});

test("labels of lines close together are put one below the other", () => {
  const labels = [
    { x: 100, length: 50 },
    { x: 104, length: 30 },
    { x: 300, length: 50 },
    { x: 102, length: 10 },
  ];
  assert.deepEqual(stackLabels(labels, 16, 8), [0, 58, 0, 96]);
});

test("a step that stands alone is in the middle of its axis", () => {
  assert.deepEqual(spreadOne(5), [4, 6]);
});

test("a logarithmic axis has the values and the threshold between its ends", () => {
  assert.deepEqual(coverDecades([2.3e-11, 2.3e-11, 1e-7]), [1e-11, 1e-7]);
  assert.deepEqual(coverDecades([10, 10, null]), [10, 100]);
  assert.deepEqual(coverDecades([null, null, 0]), [0.1, 10]);
  assert.deepEqual(keepDecades([1e-11, 2e-11, 1e-10, 9e-10, 1, 1000, null]), [1e-11, null, 1e-10, null, 1, 1000, null]);
});
