// A job's tags, which are AWS's: one of them is a note.

import { ask, reportedJob, type Job } from "../api";
import { button, fill, h, keepingFocus, name } from "../dom";
import { list, quiet } from "../parts";

const NOTE = "note";

export interface Tags {
  element: HTMLElement;
  show: (job: Job) => void;
}

/** Show the tags, and change them; `path` is the job's in the API. */
export function showTags(path: string): Tags {
  const shown = h("div");
  const said = h("span", { class: "quiet", role: "status" });
  const note = h("input", { type: "text", maxlength: 256, size: 60 });
  const key = h("input", { type: "text", maxlength: 128, required: true, size: 16 });
  const value = h("input", { type: "text", maxlength: 256, size: 24 });
  let tags: Record<string, string> = {};

  const showRemove = (each: string): HTMLElement =>
    button("×", () => void change({ [each]: null }), {
      "aria-label": `Remove the tag ${each}`,
      "data-key": `tag ${each}`,
    });

  function draw(): void {
    const others = Object.entries(tags).filter(([each]) => reportedJob || each !== NOTE);
    keepingFocus(() =>
      fill(
        shown,
        others.length
          ? list(
              others.map(([each, text]) => [name(each), ": ", name(text), " ", reportedJob ? null : showRemove(each)]),
              "plain tags",
            )
          : reportedJob
            ? quiet("This job has no tags.")
            : null,
      ),
    );
    // What somebody is typing stays.
    if (document.activeElement !== note) note.value = tags[NOTE] ?? "";
  }

  async function change(changes: Record<string, string | null>): Promise<boolean> {
    try {
      tags = (await ask<{ tags: Record<string, string> }>(`${path}/tags`, {}, { tags: changes })).tags;
    } catch (error) {
      said.textContent = (error as Error).message;
      return false;
    }
    said.textContent = "Saved.";
    draw();
    return true;
  }

  const submit = (act: () => Promise<void>) => (event: Event) => {
    event.preventDefault();
    void act();
  };
  const forms = [
    h(
      "form",
      { class: "filters", submit: submit(async () => void (await change({ [NOTE]: note.value.trim() || null }))) },
      h("label", {}, "Note ", note),
      h("button", { type: "submit" }, "Save the note"),
    ),
    h(
      "form",
      {
        class: "filters",
        submit: submit(async () => {
          if (await change({ [key.value.trim()]: value.value })) [key.value, value.value] = ["", ""];
        }),
      },
      h("label", {}, "Tag ", key),
      h("label", {}, "Value ", value),
      h("button", { type: "submit" }, "Set the tag"),
      said,
    ),
  ];
  return {
    element: h(
      "section",
      { "aria-label": "Note and tags" },
      h("h2", {}, "Note and tags"),
      shown,
      reportedJob ? null : forms,
    ),
    show: (job) => {
      tags = job.tags;
      draw();
    },
  };
}
