import assert from "node:assert/strict";
import { test } from "node:test";

import type { HeatMap, Histogram, Line, Values } from "../src/api_types.ts";
import {
  arrangeBins,
  arrangeFeatures,
  arrangeLines,
  describeGaps,
  filterRows,
  listFacts,
  nameSteps,
  placeFirings,
  placeInTime,
  suitsLogarithm,
} from "../src/tensors/figures.ts";

const LINE: Line = {
  tensor: "loss",
  mode: "TRAIN",
  worker: "w0",
  known: 2,
  read: 2,
  unread: 0,
  steps: [0, 5],
  min: [1, 2],
  max: [3, 4],
  mean: [2, 3],
  notFinite: { count: 0, first: [] },
};
const MAP: HeatMap = {
  tensors: ["a/Weight", "a/bias"],
  known: 2,
  steps: [0, 1],
  modes: ["TRAIN", "EVAL"],
  values: [
    [1, 2],
    [3, null],
  ],
};

test("a firing is in the column of its step, or of the next that is shown", () => {
  const place = (step: number): number[] =>
    placeFirings([{ step, rule: "r" }], [10, 20, 30]).map((each) => each.column);
  assert.deepEqual([10, 15, 30].map(place), [[0], [1], [2]]);
  assert.deepEqual([9, 31].map(place), [[], []]);
  assert.deepEqual(placeFirings([{ step: 0, rule: "r" }], []), []);
});

test("steps have their modes where there are several", () => {
  assert.deepEqual(nameSteps([0, 1], ["TRAIN", "TRAIN"]), ["0", "1"]);
  assert.deepEqual(nameSteps([0, 1, 2], ["TRAIN", "EVAL", "GLOBAL"]), ["0 (TRAIN)", "1 (EVAL)", "2"]);
});

test("a line has a band only where a point stands for several steps", () => {
  const [plain, banded] = arrangeLines([LINE, { ...LINE, mode: "EVAL", read: 9 }]);
  assert.equal(plain?.low, undefined);
  assert.deepEqual([banded?.low, banded?.high], [LINE.min, LINE.max]);
  assert.deepEqual([plain?.label, banded?.label], ["loss (TRAIN)", "loss (EVAL)"]);
  assert.equal(plain?.subject, "loss");
  assert.deepEqual(
    arrangeLines([LINE, { ...LINE, worker: "w1" }]).map((line) => line.subject),
    ["loss, w0", "loss, w1"],
  );
});

test("what lines leave out is said", () => {
  assert.equal(describeGaps([LINE]), "");
  const gaps = describeGaps([{ ...LINE, known: 9, unread: 1, notFinite: { count: 2, first: [[5, "NaN"]] } }]);
  assert.match(gaps, /^loss: 2 of 9 steps are shown\. loss: 1 values are too large.* first at step 5\.$/);
});

test("a histogram has its highest values above, and no colour where a bin is empty", () => {
  const found: Histogram = {
    tensor: "w",
    scale: "magnitude",
    edges: [-2, -1, 0],
    steps: [0, 1],
    modes: [],
    shares: [
      [0.5, 0.5],
      [0, 1],
    ],
    counts: [],
  };
  assert.deepEqual(arrangeBins(found, "magnitude"), [
    { label: "10^-1.0", values: [0.5, 1] },
    { label: "10^-2.0", values: [0.5, null] },
  ]);
  assert.equal(arrangeBins(found, "value")[0]?.label, "-1");
});

test("rows are found by a part of their names in any case", () => {
  assert.deepEqual(filterRows(MAP, "wEIGHT"), { rows: ["a/Weight"], values: [[1, 2]] });
  assert.equal(filterRows(MAP, "").rows.length, 2);
  assert.deepEqual(filterRows(MAP, "none"), { rows: [], values: [] });
});

test("a scale of magnitudes suits numbers from 0 up, if not all are 0", () => {
  assert.ok(suitsLogarithm([[0, 1, null, "NaN"]]));
  assert.ok(!suitsLogarithm([[0, -1, 1]]));
  assert.ok(!suitsLogarithm([[0, 0]]));
  assert.ok(!suitsLogarithm([]));
});

test("features are ordered by their last importance", () => {
  assert.deepEqual(
    arrangeFeatures(MAP, "a/").map((each) => each.feature),
    ["bias", "Weight"],
  );
});

test("facts of a tensor are those that are known", () => {
  const found: Values = { tensor: "w", step: 3, workers: ["w0"], reductions: { abs_max: "NaN" }, shape: [], min: 0.5 };
  const facts = Object.fromEntries(listFacts(found));
  assert.deepEqual(
    ["step", "type", "shape", "min", "max", "not finite", "saved abs_max"].map((each) => facts[each]),
    ["3", "–", "one number", "0.5", "–", "–", "NaN"],
  );
});

test("lines are placed in time, and what has no time is left out", () => {
  const lines = arrangeLines([LINE, { ...LINE, tensor: "other", read: 9 }]);
  const times = [
    [1_500, 4_000],
    [null, 2_000],
  ];
  const [first, second] = placeInTime(lines, times, "relative");
  assert.deepEqual(
    [first?.at, first?.values],
    [
      [0, 2.5],
      [2, 3],
    ],
  );
  assert.deepEqual([second?.at, second?.values, second?.low, second?.high], [[0.5], [3], [2], [4]]);
  assert.deepEqual(placeInTime(lines, times, "time")[0]?.at, [1.5, 4]);
  assert.deepEqual(placeInTime(lines, [], "relative")[0]?.at, []);
});
