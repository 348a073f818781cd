// The last events and messages, with their JSON and what targets answered.

import { ask, type EventList } from "../api";
import { debounce, fill, h, keepingFocus } from "../dom";
import { formatClock } from "../format";
import { quiet } from "../parts";
import { showEvent } from "./timeline";
import { load, type View } from "./view";

export function showEvents(root: Element): View {
  const list = h("div");
  const refresh = (): Promise<void> =>
    load(list, async () => {
      const found = await ask<EventList>("events", { limit: 100 });
      keepingFocus(() =>
        fill(
          list,
          found.events.length
            ? h(
                "ol",
                { class: "timeline" },
                found.events
                  .reverse()
                  .map((each) =>
                    h(
                      "li",
                      {},
                      h("time", {}, formatClock(each.timeMs)),
                      h(
                        "span",
                        { class: "quiet" },
                        String(((each.content["detail"] ?? {}) as Record<string, unknown>)["TrainingJobName"] ?? ""),
                      ),
                      showEvent(each),
                    ),
                  ),
              )
            : quiet("Nothing was sent yet."),
        ),
      );
    });
  fill(root, h("h1", {}, "Events"), quiet("The newest hundred, as EventBridge and SNS sent them."), list);
  void refresh();
  return { title: "Events", watches: "", change: debounce(() => void refresh(), 150) };
}
