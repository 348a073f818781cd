// A processing job: what it reads and writes, what it printed, and what it belongs to.

import type { ProcessingJob } from "../api";
import { fill, h, name } from "../dom";
import { joinPath, linkToJob } from "../format";
import { folded } from "../parts";
import { showJobPage } from "./job_page";
import { showLogs, type LogPanel } from "./logs";
import { showExecution, showLinks, showStatus } from "./status";
import type { View } from "./view";

export function showProcessingJob(root: Element, region: string, job: string): View {
  const path = `processing-jobs/${joinPath(region, job)}`;
  const facts = h("div");
  const log = h("div");
  const described = h("pre", { tabindex: "0", role: "region", "aria-label": "DescribeProcessingJob" });
  const details = folded("DescribeProcessingJob", described);
  let panel: LogPanel | null = null;
  return showJobPage<ProcessingJob>(root, {
    path,
    list: ["#/processing", "Processing jobs"],
    region,
    title: job,
    update: (found, head, content) => {
      if (!facts.isConnected) fill(content, facts, h("h2", {}, "Log"), log, details);
      fill(
        head,
        showStatus(found, path),
        found.trainingJob
          ? h(
              "p",
              {},
              `The rule ${found.rule ?? ""} judges the training job `,
              h("a", { href: linkToJob(region, found.trainingJob) }, name(found.trainingJob)),
              ".",
            )
          : null,
        showExecution(found.execution),
      );
      fill(
        facts,
        found.exitMessage ? [h("h2", {}, "Exit message"), h("p", { class: "said" }, found.exitMessage)] : [],
        h("h2", {}, "Inputs and outputs"),
        showLinks({ image: found.image, ...found.links }),
      );
      described.textContent = JSON.stringify(found.description, null, 1);
      panel ??= showLogs(log, path);
      panel.update({ hosts: found.hosts, rules: [] });
    },
  });
}
