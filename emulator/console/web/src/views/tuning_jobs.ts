// The hyperparameter tuning jobs.

import type { TuningJobSummary } from "../api";
import { h } from "../dom";
import { formatNumber, linkTo } from "../format";
import { nameCell, showJobList, STATUSES, statusCell, timeCells } from "./job_list";
import type { View } from "./view";

export function showTuningJobs(root: Element): View {
  return showJobList<TuningJobSummary>(root, {
    heading: "Tuning jobs",
    title: "Tuning jobs",
    path: "tuning-jobs",
    nouns: ["tuning job", "tuning jobs"],
    empty: "No tuning jobs yet: CreateHyperParameterTuningJob makes them.",
    searched: "name, region, strategy …",
    filters: [{ key: "status", label: "Status", options: STATUSES }],
    columns: [
      ["Tuning job", "name"],
      ["Status", "status"],
      ["Trials", "count"],
      ["Best value", "fact"],
      ["Age", "time"],
      ["Duration", "time"],
    ],
    cells: (job) => [
      nameCell(job, "Job", linkTo("tuning", job.region, job.name)),
      statusCell(job),
      h("td", { "data-label": "Trials" }, `${job.trials}${job.mostTrials === null ? "" : ` of ${job.mostTrials}`}`),
      h(
        "td",
        { "data-label": "Best value" },
        job.best === null ? "–" : formatNumber(job.best),
        h("span", { class: "quiet" }, ` ${job.objective}`),
      ),
      ...timeCells(job),
    ],
  });
}
