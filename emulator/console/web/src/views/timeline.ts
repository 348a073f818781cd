// The timeline of a job: its stages, and the events that were sent.

import { ask, type Job, type Logs, type SentEvent } from "../api";
import { button, fill, h, name } from "../dom";
import { formatClock, formatDuration } from "../format";
import { mark } from "../marks";
import { load } from "./view";

// Events whose details are open: a timeline that is drawn again keeps them so.
const opened = new Set<string>();

/** The stages of a job and the events that were sent of it, by time. */
export function showTimeline(job: Job, path: string): HTMLElement {
  const began = job.creationMs;
  const entries = [
    ...job.transitions.map((each) => ({
      at: each.startMs,
      order: 0,
      element: h(
        "li",
        { class: "stage" },
        h("time", {}, `${((each.startMs - began) / 1000).toFixed(1)} s`),
        h("strong", {}, each.status),
        " ",
        h("span", {}, each.message),
        each.endMs ? h("span", { class: "quiet" }, ` ${formatDuration(each.endMs - each.startMs)}`) : null,
      ),
    })),
    ...job.events.map((each) => ({
      at: each.timeMs,
      order: 1,
      element: h("li", {}, h("time", {}, `${((each.timeMs - began) / 1000).toFixed(1)} s`), showEvent(each, path)),
    })),
  ].sort((a, b) => a.at - b.at || a.order - b.order);
  const spent = job.spent.map((each) => `${each.phase} ${each.seconds.toFixed(2)} s`);
  return h(
    "div",
    {},
    spent.length ? h("p", { class: "spent" }, h("strong", {}, "Seconds spent"), ` ${spent.join(", ")}`) : null,
    h(
      "ol",
      { class: "timeline" },
      entries.map((each) => each.element),
    ),
  );
}

/** An event, with what its targets answered and its JSON. */
export function showEvent(event: SentEvent, path = ""): HTMLElement {
  const detail = (event.content["detail"] ?? {}) as Record<string, unknown>;
  const rules =
    (detail["DebugRuleEvaluationStatuses"] as
      { RuleConfigurationName: string; RuleEvaluationStatus: string }[] | undefined) ?? [];
  const title =
    event.service === "SNS"
      ? `Message: ${String(event.content["Subject"] ?? event.content["Message"] ?? "").slice(0, 120)}`
      : `${String(event.content["detail-type"] ?? "Event")}: ${String(detail["SecondaryStatus"] ?? detail["ProcessingJobStatus"] ?? "")}`;
  const json = h("pre", { tabindex: "0" });
  const key = `event ${event.sequence}`;
  const open = opened.has(key);
  const details = h(
    "details",
    {
      open,
      toggle: () => {
        if (details.open) {
          opened.add(key);
          json.textContent = JSON.stringify(event.content, null, 1);
        } else opened.delete(key);
      },
    },
    h(
      "summary",
      { "data-key": key },
      name(title),
      rules
        .filter((rule) => rule.RuleEvaluationStatus === "IssuesFound")
        .map((rule) => mark(rule.RuleEvaluationStatus, rule.RuleConfigurationName)),
      event.deliveries.length
        ? h(
            "span",
            { class: "quiet" },
            ` → ${event.deliveries.length} ${event.deliveries.length === 1 ? "target" : "targets"}`,
          )
        : null,
    ),
    event.deliveries.map((each) => {
      const log = h("div");
      return h(
        "div",
        { class: "delivery" },
        h(
          "p",
          {},
          each.succeeded ? "● " : "✖ ",
          name(each.function || each.target_arn),
          " ",
          h("span", { class: "quiet" }, `${each.succeeded ? "answered" : "failed"} at ${formatClock(each.timeMs)}`),
        ),
        each.answer ? h("pre", { tabindex: "0" }, each.answer) : null,
        each.function && path
          ? button(
              "Log of the function",
              () =>
                void load(log, async () => {
                  const query = { function: each.function, requestId: each.request_id };
                  const found = await ask<Logs>(`${path}/logs`, query);
                  const lines = found.streams.flatMap((stream) => stream.lines.map((line) => line.message));
                  fill(log, h("pre", { tabindex: "0" }, lines.join("\n") || "Nothing was printed."));
                }),
            )
          : null,
        log,
      );
    }),
    json,
  );
  if (open) json.textContent = JSON.stringify(event.content, null, 1);
  return details;
}
