// The jobs, newest first.

import { ask, type JobList, type JobSummary } from "../api";
import { choice, debounce, fill, h, keepingFocus, name } from "../dom";
import { formatDuration, linkToJob } from "../format";
import { mark, markWarnings } from "../marks";
import { showNodes } from "./nodes";
import { load, type View } from "./view";

const STATUSES = ["InProgress", "Completed", "Failed", "Stopping", "Stopped"];
const VERDICTS = ["IssuesFound", "NoIssuesFound", "InProgress", "Error", "Stopped"];
const MOST_COMPARED = 6;

export function showJobs(root: Element): View {
  let [words, status, rule] = ["", "", ""];
  let jobs: JobSummary[] = [];
  const chosen = new Set<string>();
  const body = h("tbody");
  const said = h("p", { class: "quiet", role: "status" }, "Loading …");
  const compare = h("a", { class: "button", role: "link", "aria-disabled": "true" }, "Compare");
  const list = h("div");
  const nodes = h("div");

  const key = (job: JobSummary): string => `${job.region}/${job.name}`;
  const showChosen = (): void => {
    const ready = chosen.size >= 2 && chosen.size <= MOST_COMPARED;
    compare.textContent = chosen.size ? `Compare ${chosen.size}` : "Compare";
    if (ready) {
      compare.setAttribute("href", `#/compare?jobs=${[...chosen].map(encodeURIComponent).join(",")}`);
      compare.removeAttribute("aria-disabled");
    } else {
      compare.removeAttribute("href");
      compare.setAttribute("aria-disabled", "true");
      compare.title = `Choose two to ${MOST_COMPARED} jobs.`;
    }
  };
  const describe = (job: JobSummary): HTMLTableRowElement => {
    const box = h("input", {
      type: "checkbox",
      "aria-label": `Compare ${job.name}`,
      "data-key": `box ${key(job)}`,
      checked: chosen.has(key(job)),
      change: () => {
        if (box.checked) chosen.add(key(job));
        else chosen.delete(key(job));
        showChosen();
      },
    });
    return h(
      "tr",
      { "data-job": job.name },
      h("td", {}, box),
      h(
        "td",
        { "data-label": "Job" },
        h("a", { href: linkToJob(job.region, job.name), "data-key": key(job) }, name(job.name)),
        h("span", { class: "quiet region" }, ` ${job.region}`),
      ),
      h(
        "td",
        { "data-label": "Status" },
        mark(job.status),
        job.secondaryStatus === job.status ? null : h("span", { class: "quiet" }, ` ${job.secondaryStatus}`),
        markWarnings(job.warnings),
        job.failureReason ? h("p", { class: "quiet reason" }, job.failureReason.slice(0, 160)) : null,
      ),
      h(
        "td",
        { "data-label": "Rules" },
        job.rules.length
          ? h(
              "ul",
              { class: "marks" },
              job.rules.map((each) => h("li", {}, mark(each.status, each.name))),
            )
          : h("span", { class: "quiet" }, "–"),
      ),
      h("td", { "data-label": "Age" }, h("span", { "data-age": job.creationMs })),
      h(
        "td",
        { "data-label": "Duration" },
        h(
          "span",
          job.endMs ? {} : { "data-age": job.creationMs },
          job.endMs ? formatDuration(job.endMs - job.creationMs) : "",
        ),
      ),
    );
  };
  const tick = (): void => {
    for (const element of body.querySelectorAll<HTMLElement>("[data-age]"))
      element.textContent = formatDuration(Date.now() - Number(element.dataset["age"]));
  };
  const refresh = (): Promise<void> =>
    load(list, async () => {
      const found = await ask<JobList>("jobs", { words, status, rule });
      const before = JSON.stringify(jobs);
      jobs = found.jobs;
      const filtered = words || status || rule;
      said.textContent = jobs.length
        ? `${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}`
        : filtered
          ? "No job fits."
          : "No training jobs yet. Create one with any AWS client, or run smdebug-emulator demo.";
      if (before !== JSON.stringify(jobs) || !body.isConnected) {
        keepingFocus(() => fill(body, jobs.map(describe)));
        if (!body.isConnected) fill(list, said, table);
      }
      table.hidden = !jobs.length;
      tick();
    });
  const soon = debounce(() => void refresh(), 60);
  const table = h(
    "table",
    { class: "jobs" },
    h("caption", { class: "unseen" }, "Training jobs, newest first"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Compare", "Job", "Status", "Rules", "Age", "Duration"].map((text) => h("th", { scope: "col" }, text)),
      ),
    ),
    body,
  );
  const search = h("input", {
    type: "search",
    placeholder: "name, region, rule …",
    "aria-label": "Search jobs",
    "data-search": true,
    input: () => {
      words = search.value;
      soon();
    },
  });
  fill(
    root,
    h("h1", {}, "Training jobs"),
    h(
      "form",
      { class: "filters", role: "search", submit: (event) => event.preventDefault() },
      search,
      choice("Status", [["", "any"], ...STATUSES.map((each): [string, string] => [each, each])], "", (value) => {
        status = value;
        soon();
      }),
      choice("A rule", [["", "any"], ...VERDICTS.map((each): [string, string] => [each, each])], "", (value) => {
        rule = value;
        soon();
      }),
      compare,
    ),
    list,
    nodes,
  );
  fill(list, said, table);
  showChosen();
  void refresh();
  const timer = window.setInterval(tick, 1000);
  const leaveNodes = showNodes(nodes);
  return {
    title: "Jobs",
    watches: "",
    change: soon,
    close: () => {
      clearInterval(timer);
      leaveNodes();
    },
  };
}
