// The processing jobs, evaluations of rules included.

import type { ProcessingJobSummary } from "../api";
import { h, name } from "../dom";
import { linkTo, linkToJob } from "../format";
import { nameCell, showJobList, STATUSES, statusCell, timeCells } from "./job_list";
import type { View } from "./view";

export function showProcessingJobs(root: Element): View {
  return showJobList<ProcessingJobSummary>(root, {
    heading: "Processing jobs",
    title: "Processing jobs",
    path: "processing-jobs",
    nouns: ["processing job", "processing jobs"],
    empty: "No processing jobs yet. Rules of training jobs run as processing jobs, and clients can create them.",
    searched: "name, region, training job …",
    filters: [
      { key: "status", label: "Status", options: STATUSES },
      { key: "image", label: "Image" },
    ],
    columns: [
      ["Processing job", "name"],
      ["Status", "status"],
      ["Judges", "rules"],
      ["Age", "time"],
      ["Duration", "time"],
    ],
    cells: (job) => [
      nameCell(job, "Job", linkTo("processing", job.region, job.name)),
      statusCell(job),
      h(
        "td",
        { "data-label": "Judges" },
        job.trainingJob
          ? [h("a", { href: linkToJob(job.region, job.trainingJob) }, name(job.trainingJob)), ` by ${job.rule ?? ""}`]
          : h("span", { class: "quiet" }, "–"),
      ),
      ...timeCells(job),
    ],
  });
}
