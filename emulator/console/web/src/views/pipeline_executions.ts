// The executions of all pipelines.

import type { PipelineExecutionSummary } from "../api";
import { h, name } from "../dom";
import { linkTo } from "../format";
import { nameCell, showJobList, STATUSES, statusCell, timeCells } from "./job_list";
import type { View } from "./view";

export function showPipelineExecutions(root: Element): View {
  return showJobList<PipelineExecutionSummary>(root, {
    heading: "Pipeline executions",
    title: "Pipelines",
    path: "pipeline-executions",
    nouns: ["execution", "executions"],
    empty: "No pipeline was started yet: StartPipelineExecution makes an execution.",
    searched: "pipeline, name, region …",
    filters: [{ key: "status", label: "Status", options: STATUSES }],
    columns: [
      ["Execution", "name"],
      ["Pipeline", "fact"],
      ["Status", "status"],
      ["Steps", "count"],
      ["Age", "time"],
      ["Duration", "time"],
    ],
    cells: (job) => [
      nameCell(job, "Job", linkTo("pipelines", job.region, job.name), job.title),
      h("td", { "data-label": "Pipeline" }, name(job.pipeline)),
      statusCell(job),
      h("td", { "data-label": "Steps" }, `${job.stepsEnded} of ${job.steps}`),
      ...timeCells(job),
    ],
  });
}
