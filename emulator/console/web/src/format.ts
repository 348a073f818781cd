// How numbers, times and places are written.

export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function formatClock(milliseconds: number): string {
  const moment = new Date(milliseconds);
  const parts = [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map((part) =>
    String(part).padStart(2, "0"),
  );
  return `${parts.join(":")}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
}

export function formatNumber(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const number = Number(value);
  if (!Number.isFinite(number)) return String(value);
  const size = Math.abs(number);
  if (number === 0 || (Number.isInteger(number) && size < 1e6)) return String(number);
  return size >= 1e5 || size < 1e-3 ? number.toExponential(2) : String(Number(number.toPrecision(5)));
}

export function formatBytes(count: number): string {
  let size = count;
  for (const unit of ["B", "kB", "MB"]) {
    if (size < 1000) return unit === "B" ? `${size} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1000;
  }
  return `${size.toFixed(1)} GB`;
}

/** Split s3://bucket/key; null for anything else. */
export function parseS3(uri: string): { bucket: string; key: string } | null {
  const found = /^s3:\/\/([^/]+)\/?(.*)$/.exec(uri);
  return found ? { bucket: found[1] ?? "", key: found[2] ?? "" } : null;
}

/** Parts of an address, of which every character is kept. */
export function joinPath(...parts: string[]): string {
  return parts.map(encodeURIComponent).join("/");
}

export function linkToS3(bucket: string, key: string): string {
  return `#/s3/${joinPath(bucket, ...key.split("/"))}`;
}

export function linkToJob(region: string, job: string, part = ""): string {
  return `#/jobs/${joinPath(region, job)}${part && `/${part}`}`;
}

/** The page of a job that is no training job. */
export function linkTo(list: "processing" | "tuning" | "pipelines", region: string, job: string): string {
  return `#/${list}/${joinPath(region, job)}`;
}

/** A text, cut at its end where it is longer than the most letters. */
export function cutEnd(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

/** The keys whose values are not the same in all objects. */
export function findDifferences(objects: Record<string, string>[]): string[] {
  const keys = [...new Set(objects.flatMap((each) => Object.keys(each)))].sort();
  return keys.filter((key) => new Set(objects.map((each) => each[key])).size > 1);
}
