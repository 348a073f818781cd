// What the pages of jobs of all kinds have at their tops: status, time, failure, and links to what belongs to it.

import { ask, reportedJob, type ExecutionReference } from "../api";
import { button, h, name } from "../dom";
import { formatDuration, linkTo, linkToS3, parseS3 } from "../format";
import { mark } from "../marks";
import { pairs } from "../parts";

const ENDED = new Set(["Completed", "Failed", "Stopped"]);

interface AnyJob {
  region: string;
  name: string;
  status: string;
  creationMs: number;
  endMs: number | null;
  failureReason: string | null;
}

export function hasEnded(job: Pick<AnyJob, "status">): boolean {
  return ENDED.has(job.status);
}

/** The status of a job with a button that stops it, and why it failed; `path` is the job's in the API. */
export function showStatus(job: AnyJob, path: string, secondary = job.status): (HTMLElement | null)[] {
  const running = !hasEnded(job);
  const ended = job.endMs ?? Date.now();
  const said = h("span", { class: "quiet", role: "status" });
  const askToStop = (): void => {
    stop.disabled = true;
    void ask(`${path}/stop`, {}, {}).catch((error: unknown) => {
      said.textContent = String((error as Error).message);
    });
  };
  const stop = button("Stop the job", askToStop, { class: "danger", "data-key": "stop" });
  return [
    h(
      "p",
      { class: "facts" },
      mark(job.status),
      secondary === job.status ? null : h("span", {}, secondary),
      h("span", { class: "quiet" }, `${running ? "running for" : "took"} ${formatDuration(ended - job.creationMs)}`),
      running && job.status !== "Stopping" ? stop : null,
      said,
    ),
    job.failureReason ? h("p", { class: "problem" }, job.failureReason) : null,
  ];
}

/** Where a page is: the list it belongs to, and the region. */
export function showCrumbs(address: string, list: string, region: string): HTMLElement | null {
  return reportedJob ? null : h("p", { class: "crumbs" }, h("a", { href: address }, list), " / ", region);
}

/** The pipeline execution of which a job is a step; null where it is of none. */
export function showExecution(execution: ExecutionReference | null): HTMLElement | null {
  if (execution === null) return null;
  const href = linkTo("pipelines", execution.region, execution.name);
  return h("p", {}, "Step of the pipeline ", h("a", { href }, name(execution.pipeline), ` (${execution.name})`));
}

/** Inputs and outputs: each name with its URI as a link. */
export function showLinks(links: Record<string, string>): HTMLElement {
  return pairs(Object.entries(links).map(([what, uri]) => [what, linkUri(uri)]));
}

export function linkUri(uri: string): HTMLElement {
  const place = parseS3(uri);
  if (!place) return h("bdi", {}, uri);
  const isObject = /\.[A-Za-z0-9.]+$/.test(place.key);
  return h(
    "a",
    { href: linkToS3(place.bucket, isObject || !place.key || place.key.endsWith("/") ? place.key : `${place.key}/`) },
    name(uri),
  );
}
