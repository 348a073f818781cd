// S3: buckets, keys and objects; what an object holds is shown, and never run.

import { address, ask, type Archive, type BucketList, type Level } from "../api";
import { button, fill, h, name } from "../dom";
import { formatBytes, linkToS3 } from "../format";
import { list, quiet, row, table } from "../parts";
import { load, type View } from "./view";

const SHOWN_BYTES = 1_000_000;
const IMAGES = /\.(png|jpe?g|gif|svg|webp)$/i;
const PAGES = /\.html?$/i;
const ARCHIVES = /\.(tar|tgz|tar\.gz)$/i;
const DOWNLOADS = /\.(pt|pth|bin|npz|npy|zip|tfevents|pkl|h5|params|model|ts)$/i;

export function showS3(root: Element, bucket: string, key: string): View {
  const content = h("div");
  const crumbs = h("p", { class: "crumbs" }, h("a", { href: "#/s3" }, "S3"));
  if (bucket) {
    crumbs.append(" / ", h("a", { href: linkToS3(bucket, "") }, name(bucket)));
    const parts = key.split("/");
    parts.forEach((part, index) => {
      if (part)
        crumbs.append(
          " / ",
          h(
            "a",
            { href: linkToS3(bucket, `${parts.slice(0, index + 1).join("/")}${index < parts.length - 1 ? "/" : ""}`) },
            name(part),
          ),
        );
    });
  }
  fill(root, h("h1", {}, "S3"), crumbs, content);
  const isFolder = key === "" || key.endsWith("/");
  const show = (): Promise<void> =>
    load(content, async () => {
      if (!bucket) {
        const found = await ask<BucketList>("s3");
        fill(
          content,
          found.buckets.length
            ? list(found.buckets.map((each) => h("a", { href: linkToS3(each, "") }, name(each))))
            : quiet("No buckets yet."),
        );
      } else if (isFolder) await showFolder(content, bucket, key, "");
      else await showObject(content, bucket, key);
    });
  void show();
  return {
    title: bucket ? `${bucket}/${key}` : "S3",
    watches: "",
    change: () => {
      if (isFolder && !content.querySelector("[data-paged]")) void show();
    },
  };
}

async function showFolder(content: Element, bucket: string, prefix: string, after: string): Promise<void> {
  const level = await ask<Level>(`s3/${encodeURIComponent(bucket)}`, { prefix, after });
  const link = (key: string): HTMLElement =>
    h("a", { href: linkToS3(bucket, key) }, name(key.slice(prefix.length) || key));
  const rows = [
    ...level.folders.map((each) => row(link(each), ["", ""])),
    ...level.objects.map((each) =>
      row(link(each.key), [formatBytes(each.size), new Date(each.modifiedMs).toLocaleString()]),
    ),
  ];
  const more = button(
    "More",
    () =>
      void load(content, async () => {
        more.remove();
        await showFolder(content, bucket, prefix, level.after);
      }),
  );
  const body = content.querySelector("tbody");
  if (after && body) {
    body.append(...rows);
    content.setAttribute("data-paged", "");
    body.closest("table")?.setAttribute("data-paged", "");
  } else {
    fill(content, rows.length ? table(["Name", "Size", "Changed"], rows) : quiet("Nothing is here."));
  }
  if (level.after) content.append(more);
}

async function showObject(content: Element, bucket: string, key: string): Promise<void> {
  const path = `s3/${encodeURIComponent(bucket)}/object`;
  const link = address(path, { key });
  const head = h(
    "p",
    {},
    h("a", { href: address(path, { key, download: 1 }), download: "" }, "Download"),
    " ",
    h("code", {}, h("bdi", {}, `s3://${bucket}/${key}`)),
  );
  if (IMAGES.test(key)) {
    fill(content, head, h("img", { src: link, alt: key, class: "preview" }));
  } else if (PAGES.test(key)) {
    // Without a word in it the sandbox allows nothing: no script, no form, no way to the page around it.
    fill(content, head, h("iframe", { sandbox: "", src: link, title: key, class: "preview" }));
  } else if (ARCHIVES.test(key)) {
    const found = await ask<Archive>(`s3/${encodeURIComponent(bucket)}/archive`, { key });
    fill(
      content,
      head,
      h(
        "table",
        {},
        h("caption", {}, "In the archive"),
        h(
          "tbody",
          {},
          found.members.map((each) => row(name(each.name), [each.isFile ? formatBytes(each.size) : "folder"])),
        ),
      ),
      found.complete ? null : quiet("And more."),
    );
  } else if (DOWNLOADS.test(key)) {
    const answer = await fetch(address(path, { key, limit: 0 }));
    fill(
      content,
      head,
      h(
        "p",
        { class: answer.ok ? "quiet" : "problem" },
        answer.ok
          ? `${formatBytes(Number(answer.headers.get("X-Object-Size")))}, not shown.`
          : "There is no such object.",
      ),
    );
  } else {
    const answer = await fetch(address(path, { key, limit: SHOWN_BYTES }));
    if (!answer.ok)
      return fill(
        content,
        h("p", { class: "problem", role: "status" }, ((await answer.json()) as { error: string }).error),
      );
    const size = Number(answer.headers.get("X-Object-Size"));
    let text = await answer.text();
    if (/\.(json|ipynb)$/i.test(key) && size <= SHOWN_BYTES) {
      try {
        text = JSON.stringify(JSON.parse(text), null, 1);
      } catch {
        text = `${text}`;
      }
    }
    fill(
      content,
      head,
      h("pre", { tabindex: "0", dir: "auto" }, text),
      size > SHOWN_BYTES ? quiet(`These are the first ${formatBytes(SHOWN_BYTES)} of ${formatBytes(size)}.`) : null,
    );
  }
}
