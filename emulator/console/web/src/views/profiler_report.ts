// The page that the rule ProfilerReport leaves in S3.

import { address, ask, reportedJob, type Job, type Level } from "../api";
import { fill, h } from "../dom";
import { linkToS3, parseS3 } from "../format";
import { quiet } from "../parts";

/** The page that ProfilerReport leaves in S3, and replaces while the job runs; nothing in it can run or reach this page. */
export function showProfilerReport(): { element: HTMLElement; update: (job: Job) => void; look: () => Promise<void> } {
  const element = h("div");
  // Without a word in it the sandbox allows nothing: no script, no form, no way to the page around it.
  const frame = h("iframe", { sandbox: "", title: "ProfilerReport", class: "preview" });
  let place: { bucket: string; key: string } | null = null;
  let shown = 0;
  return {
    element,
    update: (job) => {
      const rule = job.rules.find((each) => each.parameters["rule_to_invoke"] === "ProfilerReport");
      const found = rule ? parseS3(`${rule.outputUri}/profiler-output/profiler-report.html`) : null;
      if (JSON.stringify(found) === JSON.stringify(place) && element.childElementCount) return;
      place = found;
      fill(
        element,
        place
          ? h(
              "p",
              {},
              h("a", { href: linkToS3(place.bucket, place.key) }, "profiler-report.html"),
              " · ",
              h("a", { href: linkToS3(place.bucket, place.key.replace(/html$/, "ipynb")) }, "the same as a notebook"),
            )
          : quiet("This job has no ProfilerReport: the rule of this name in its ProfilerRuleConfigurations makes one."),
      );
    },
    look: async () => {
      if (!place || reportedJob) return;
      const level = await ask<Level>(`s3/${encodeURIComponent(place.bucket)}`, { prefix: place.key });
      const found = level.objects.find((each) => each.key === place?.key);
      // Who reads in it is not brought back to its begin.
      if (!found || found.modifiedMs === shown || frame.matches(":hover") || document.activeElement === frame) return;
      shown = found.modifiedMs;
      frame.src = address(`s3/${encodeURIComponent(place.bucket)}/object`, { key: place.key, modified: shown });
      if (!frame.isConnected) element.append(frame);
    },
  };
}
