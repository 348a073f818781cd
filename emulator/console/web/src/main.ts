// The page: its frame, its addresses, and the stream by which it stays true.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./pictures.css";
import "./adaptations.css";

import { reportedJob } from "./api";
import { button, fill, h } from "./dom";
import { ChangeStream } from "./stream";
import { showCompare } from "./views/compare";
import { showEvents } from "./views/events";
import { showJob } from "./views/job";
import { showJobs } from "./views/jobs";
import { showPipelineExecution } from "./views/pipeline_execution";
import { showPipelineExecutions } from "./views/pipeline_executions";
import { showProcessingJob } from "./views/processing_job";
import { showProcessingJobs } from "./views/processing_jobs";
import { showS3 } from "./views/s3";
import { showTuningJob } from "./views/tuning_job";
import { showTuningJobs } from "./views/tuning_jobs";
import type { View } from "./views/view";

const THEMES = ["auto", "light", "dark"];
const app = document.getElementById("app") as HTMLElement;
const content = h("main", { id: "content", tabindex: "-1" });
const away = h(
  "p",
  { class: "away", role: "status", hidden: true },
  "The emulator does not answer; this page goes on when it does.",
);
let view: View | null = null;

const stream = new ChangeStream(
  { change: (jobs) => view?.change(jobs), progress: () => view?.progress?.() },
  (connected) => {
    away.hidden = connected;
  },
);

function readTheme(): string {
  try {
    return localStorage.getItem("theme") ?? "auto";
  } catch {
    return "auto";
  }
}
function setTheme(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
  themeButton.textContent = `Theme: ${theme}`;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    /* a browser that keeps nothing forgets it with the page */
  }
  document.dispatchEvent(new Event("theme"));
}
const themeButton = button("", () => setTheme(THEMES[(THEMES.indexOf(readTheme()) + 1) % THEMES.length] ?? "auto"));

function route(): void {
  view?.close?.();
  const [path = "", query = ""] = (location.hash || (reportedJob && `#/jobs/${reportedJob}`))
    .replace(/^#\/?/, "")
    .split("?");
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const [first = "", ...rest] = parts;
  const parameters = new URLSearchParams(query);
  const [region = "", job = ""] = rest;
  if (first === "jobs" && rest.length >= 2) view = showJob(content, region, job, rest[2] ?? "");
  else if (first === "processing") view = job ? showProcessingJob(content, region, job) : showProcessingJobs(content);
  else if (first === "tuning") view = job ? showTuningJob(content, region, job) : showTuningJobs(content);
  else if (first === "pipelines")
    view = job ? showPipelineExecution(content, region, job) : showPipelineExecutions(content);
  else if (first === "compare") view = showCompare(content, (parameters.get("jobs") ?? "").split(",").filter(Boolean));
  else if (first === "s3") view = showS3(content, rest[0] ?? "", rest.slice(1).join("/"));
  else if (first === "events") view = showEvents(content);
  else view = showJobs(content);
  document.title = `${view.title} – SageMaker Debugger console`;
  for (const link of navigation.querySelectorAll("a")) {
    const own = link.getAttribute("href")?.slice(2) ?? "";
    if (own === first || (own === "jobs" && (first === "" || first === "compare")))
      link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!reportedJob) stream.watch(view.watches);
}

const navigation = h(
  "nav",
  { "aria-label": "Parts of the console" },
  (reportedJob
    ? [[`jobs/${reportedJob}`, "Report"]]
    : [
        ["jobs", "Jobs"],
        ["processing", "Processing"],
        ["tuning", "Tuning"],
        ["pipelines", "Pipelines"],
        ["s3", "S3"],
        ["events", "Events"],
      ]
  ).map(([part, text]) => h("a", { href: `#/${part ?? ""}` }, text)),
);
fill(
  app,
  h(
    "a",
    {
      href: "#content",
      class: "skip",
      click: (event) => {
        event.preventDefault();
        content.focus();
      },
    },
    "Skip to the content",
  ),
  h(
    "header",
    {},
    h("p", { class: "brand" }, "SageMaker Debugger"),
    navigation,
    themeButton,
    reportedJob ? null : h("a", { href: "/_emulator/docs", class: "quiet" }, "API"),
  ),
  away,
  content,
);
setTheme(readTheme());
let began = false;
// Whether the search is what a link leads to.
let searching = false;

function focusSearch(): boolean {
  const search = content.querySelector<HTMLElement>("[data-search]");
  search?.focus();
  return search !== null;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement ||
    (target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type))
  );
}

window.addEventListener("hashchange", () => {
  route();
  // Who follows a link by keyboard goes on where the new part begins.
  if (began && !(searching && focusSearch())) content.focus({ preventScroll: true });
  searching = false;
  window.scrollTo(0, 0);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  event.preventDefault();
  if (!focusSearch() && !reportedJob) {
    searching = true;
    location.hash = "#/jobs";
  }
});
route();
began = true;
