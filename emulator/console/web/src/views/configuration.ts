// The configuration of a job: its request, calls that create it again, and what the hook made of it.

import { ask, jobPath, type Run } from "../api";
import { writeCalls } from "../calls";
import { button, fill, h, name } from "../dom";
import { folded, quiet, row, table } from "../parts";
import { load, type Part } from "./view";

export function showConfiguration(root: Element): Part {
  return {
    update: (job) => {
      const request = job.request as Record<string, unknown>;
      const copied = h("span", { class: "quiet", role: "status" });
      const copy = (text: string, what: string): void => {
        navigator.clipboard.writeText(text).then(
          () => {
            copied.textContent = `Copied as ${what}.`;
          },
          () => {
            copied.textContent = "The browser does not let this page copy.";
          },
        );
      };
      const hyperparameters = (request["HyperParameters"] ?? {}) as Record<string, string>;
      const merged = h("pre", { tabindex: "0" });
      const saved = h(
        "details",
        {
          toggle: () => {
            if (saved.open && !merged.textContent)
              void load(saved, async () => {
                const run = await ask<Run>(`${jobPath(job.region, job.name)}/tensors`);
                merged.textContent = JSON.stringify(
                  run.collections.map((each) => each.configuration),
                  null,
                  1,
                );
              });
          },
        },
        h("summary", {}, "Collections with the parameters that the hook used"),
        merged,
      );
      fill(
        root,
        h("h2", {}, "Create it again"),
        h(
          "p",
          { class: "buttons" },
          Object.entries(writeCalls(request)).map(([what, text]) =>
            button(`Copy as ${what}`, () => copy(text, what), { "data-call": what }),
          ),
          copied,
        ),
        h("h2", {}, "Hyperparameters"),
        Object.keys(hyperparameters).length
          ? table(
              [],
              Object.entries(hyperparameters).map(([key, value]) => row(name(key), [name(value)])),
            )
          : quiet("None."),
        h("h2", {}, "Request"),
        h("pre", { tabindex: "0" }, JSON.stringify(request, null, 1)),
        h("h2", {}, "Collections and description"),
        saved,
        folded("DescribeTrainingJob", h("pre", { tabindex: "0" }, JSON.stringify(job.description, null, 1))),
      );
    },
  };
}
