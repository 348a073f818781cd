import assert from "node:assert/strict";
import { test } from "node:test";

import {
  findDifferences,
  formatBytes,
  formatDuration,
  formatNumber,
  linkToJob,
  linkToS3,
  parseS3,
} from "../src/format.ts";

test("durations grow through their units", () => {
  assert.deepEqual([0, 9_940, 59_000, 61_000, 3_600_000, 200_000_000].map(formatDuration), [
    "0.0 s",
    "9.9 s",
    "59 s",
    "1 min 1 s",
    "1 h 0 min",
    "2 days",
  ]);
});

test("numbers are short, and what is none is named", () => {
  assert.deepEqual([0, 12, 0.5, 1e-9, 123456.5, "NaN", "-Infinity", null].map(formatNumber), [
    "0",
    "12",
    "0.5",
    "1.00e-9",
    "1.23e+5",
    "NaN",
    "-Infinity",
    "–",
  ]);
});

test("sizes", () => {
  assert.deepEqual([5, 1500, 2.5e6, 3e9].map(formatBytes), ["5 B", "1.5 kB", "2.5 MB", "3.0 GB"]);
});

test("places in S3 are split, and linked to with every character kept", () => {
  assert.deepEqual(parseS3("s3://bucket/a b/c#d"), { bucket: "bucket", key: "a b/c#d" });
  assert.equal(parseS3("https://elsewhere"), null);
  assert.equal(linkToS3("bucket", "a b/c#d?"), "#/s3/bucket/a%20b/c%23d%3F");
  assert.equal(linkToJob("us-east-1", "job", "logs"), "#/jobs/us-east-1/job/logs");
});

test("hyperparameters that differ, or that one lacks", () => {
  assert.deepEqual(
    findDifferences([
      { a: "1", b: "2" },
      { a: "1", b: "3", c: "4" },
    ]),
    ["b", "c"],
  );
});
