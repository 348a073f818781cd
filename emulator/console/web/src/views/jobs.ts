// The training jobs, of which some can be chosen and compared.

import type { JobSummary } from "../api";
import { h } from "../dom";
import { linkToJob } from "../format";
import { markRules, markWarnings, tellSubstitutions } from "../marks";
import { nameCell, showJobList, STATUSES, statusCell, timeCells } from "./job_list";
import { showNodes } from "./nodes";
import type { View } from "./view";

const VERDICTS = ["IssuesFound", "NoIssuesFound", "InProgress", "Error", "Stopped"];

export function showJobs(root: Element): View {
  const chosen = new Set<string>();
  const nodes = h("div");
  const compare = h("a", { class: "button", role: "link", "aria-disabled": "true" }, "Compare");
  const hint = h("span", { class: "quiet" });
  const showChosen = (): void => {
    if (chosen.size >= 2) {
      compare.textContent = `Compare ${chosen.size} jobs`;
      compare.setAttribute("href", `#/compare?jobs=${[...chosen].map(encodeURIComponent).join(",")}`);
      compare.removeAttribute("aria-disabled");
      hint.textContent = "";
    } else {
      compare.textContent = "Compare";
      compare.removeAttribute("href");
      compare.setAttribute("aria-disabled", "true");
      hint.textContent = chosen.size ? "Choose at least one more job." : "Choose two or more jobs.";
    }
  };
  const describe = (job: JobSummary): HTMLElement[] => {
    const key = `${job.region}/${job.name}`;
    const box = h("input", {
      type: "checkbox",
      "aria-label": `Compare ${job.name}`,
      "data-key": `box ${key}`,
      checked: chosen.has(key),
      change: () => {
        if (box.checked) chosen.add(key);
        else chosen.delete(key);
        showChosen();
      },
    });
    return [
      h("td", { class: "choice" }, box),
      nameCell(job, "Job", linkToJob(job.region, job.name)),
      statusCell(
        job,
        job.secondaryStatus === job.status ? null : h("span", { class: "quiet" }, ` ${job.secondaryStatus}`),
        markWarnings(job.warnings),
        tellSubstitutions(job.warnings),
      ),
      h(
        "td",
        { "data-label": "Rules", class: job.rules.length ? null : "none" },
        job.rules.length ? markRules(job.rules) : h("span", { class: "quiet" }, "–"),
      ),
      ...timeCells(job),
    ];
  };
  showChosen();
  return showJobList<JobSummary>(root, {
    heading: "Training jobs",
    title: "Jobs",
    path: "jobs",
    nouns: ["job", "jobs"],
    empty: "No training jobs yet. Create one with any AWS client, or run smdebug-emulator demo.",
    searched: "name, region, rule …",
    filters: [
      { key: "status", label: "Status", options: STATUSES },
      { key: "rule", label: "Rule verdict", options: VERDICTS },
      { key: "image", label: "Image" },
    ],
    columns: [
      ["Compare", "choice"],
      ["Job", "name"],
      ["Status", "status"],
      ["Rules", "rules"],
      ["Age", "time"],
      ["Duration", "time"],
    ],
    cells: describe,
    // Behind the list: jobs are chosen before they are compared.
    after: [h("div", { class: "compare-bar", role: "group", "aria-label": "Chosen jobs" }, compare, hint), nodes],
    close: showNodes(nodes),
  });
}
