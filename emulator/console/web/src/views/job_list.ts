// A list of jobs of one kind: filters that are in the address, pages, and rows that stay true.

import { readChoices, writeParameters } from "../address";
import { ask, type JobSummary } from "../api";
import { button, choice, debounce, fill, h, keepingFocus, name } from "../dom";
import { formatDuration } from "../format";
import { mark } from "../marks";
import { load, type View } from "./view";

const PAGE = 100;
export const STATUSES = ["InProgress", "Completed", "Failed", "Stopping", "Stopped"];

/** What a list of any kind shows of a job. */
export type ListedJob = Pick<JobSummary, "name" | "region" | "status" | "creationMs" | "endMs" | "failureReason">;

export interface Filter {
  /** The parameter's name, in the address and in the API. */
  key: string;
  label: string;
  /** Texts to choose from; a text to type where there are none. */
  options?: string[];
}

export interface JobListOptions<T extends ListedJob> {
  heading: string;
  /** The page's title. */
  title: string;
  /** Where the API lists them. */
  path: string;
  nouns: [one: string, several: string];
  /** What is said where there are none at all. */
  empty: string;
  searched: string;
  filters: Filter[];
  columns: [heading: string, style: string][];
  cells: (job: T) => HTMLElement[];
  /** What follows the list. */
  after?: HTMLElement[];
  close?: () => void;
}

export function showJobList<T extends ListedJob>(root: Element, options: JobListOptions<T>): View {
  const wanted = readChoices("words", ...options.filters.map((each) => each.key));
  let page = Math.max(1, Math.floor(Number(readChoices("page").page)) || 1);
  let before = "";
  const [one, several] = options.nouns;
  const said = h("p", { class: "quiet", role: "status" }, "Loading …");
  const body = h("tbody");
  const pages = h("nav", { class: "buttons", "aria-label": "Pages of the list" });
  const list = h("div");
  const table = h(
    "table",
    { class: `jobs ${options.path}` },
    h("caption", { class: "unseen" }, `${options.heading}, newest first`),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        options.columns.map(([heading, style]) => h("th", { scope: "col", class: style }, heading)),
      ),
    ),
    body,
  );

  const tick = (): void => {
    for (const element of body.querySelectorAll<HTMLElement>("[data-age]"))
      element.textContent = formatDuration(Date.now() - Number(element.dataset["age"]));
  };
  const showPages = (total: number, count: number): void => {
    const first = (page - 1) * PAGE;
    const last = Math.max(1, Math.ceil(total / PAGE));
    const filtered = Object.values(wanted).some(Boolean);
    said.textContent = !total
      ? filtered
        ? `No ${one} matches.`
        : options.empty
      : total <= PAGE
        ? `${total} ${total === 1 ? one : several}`
        : page === 1
          ? `Latest ${count} of ${total} ${several}`
          : count
            ? `${first + 1} to ${first + count} of ${total} ${several}`
            : `No ${several} on page ${page}: there are ${last} pages.`;
    const turn = (text: string, to: number, enabled: boolean): HTMLElement =>
      button(
        text,
        () => {
          page = to;
          write();
          void refresh().then(() => table.scrollIntoView());
        },
        { "data-key": text, disabled: !enabled },
      );
    pages.hidden = last <= 1 && page === 1;
    fill(
      pages,
      turn("Newer", Math.min(page - 1, last), page > 1),
      h("span", { class: "quiet" }, `Page ${page} of ${last}`),
      turn("Older", page + 1, page < last),
    );
  };
  let asked = 0;
  const refresh = (): Promise<void> =>
    load(list, async () => {
      const query = { ...wanted, limit: PAGE, offset: (page - 1) * PAGE };
      const number = ++asked;
      const found = await ask<{ jobs: T[]; total: number }>(options.path, query);
      // Answers may come in another order than the questions: only that to the last one is shown.
      if (number !== asked) return;
      const now = JSON.stringify([found.jobs, found.total, page]);
      if (now !== before || !body.isConnected) {
        before = now;
        keepingFocus(() => {
          fill(
            body,
            found.jobs.map((job) => h("tr", { "data-job": job.name }, options.cells(job))),
          );
          showPages(found.total, found.jobs.length);
        });
        if (!body.isConnected) fill(list, said, table, pages);
      }
      table.hidden = !found.jobs.length;
      tick();
    });
  const write = (): void => writeParameters({ ...wanted, page: page > 1 ? String(page) : "" });
  const soon = debounce(() => void refresh(), 60);
  const change = (key: string, value: string): void => {
    wanted[key] = value;
    page = 1;
    write();
    soon();
  };
  const type = (key: string, label: string, placeholder: string): HTMLInputElement => {
    const input = h("input", {
      type: "search",
      placeholder,
      value: wanted[key] ?? "",
      ...(key === "words" ? { "data-search": true, "aria-label": label } : {}),
      input: () => change(key, input.value),
    });
    return input;
  };
  fill(
    root,
    h("h1", {}, options.heading),
    h(
      "form",
      { class: "filters", role: "search", submit: (event) => event.preventDefault() },
      type("words", `Search ${several}`, options.searched),
      options.filters.map(({ key, label, options: texts }) =>
        texts
          ? choice(label, [["", "any"], ...texts], wanted[key] ?? "", (value) => change(key, value))
          : h("label", { class: "typed" }, label, type(key, label, "any")),
      ),
    ),
    list,
    options.after ?? [],
  );
  fill(list, said, table, pages);
  table.hidden = pages.hidden = true;
  void refresh();
  const timer = window.setInterval(tick, 1000);
  return {
    title: options.title,
    watches: "",
    change: soon,
    close: () => {
      clearInterval(timer);
      options.close?.();
    },
  };
}

/** The cell of a job's name, with its region beside it. */
export function nameCell(job: ListedJob, label: string, address: string, text = job.name): HTMLElement {
  return h(
    "th",
    { scope: "row", "data-label": label },
    h("a", { href: address, "data-key": `${job.region}/${job.name}` }, name(text)),
    h("span", { class: "quiet region" }, ` ${job.region}`),
  );
}

/** The cell of a job's status, with why it failed. */
export function statusCell(job: ListedJob, ...more: (HTMLElement | null)[]): HTMLElement {
  return h(
    "td",
    { "data-label": "Status" },
    mark(job.status),
    more,
    job.failureReason
      ? h("p", { class: "quiet reason", title: job.failureReason }, job.failureReason.slice(0, 400))
      : null,
  );
}

/** The cells of a job's age and duration. */
export function timeCells(job: ListedJob): HTMLElement[] {
  return [
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
  ];
}
