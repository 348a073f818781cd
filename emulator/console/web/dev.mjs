// Development server: the page from its sources, rebuilt by esbuild when they change, and a proxy to an emulator.

import { createServer, request } from "node:http";

import { context } from "esbuild";

const {
  CONSOLE_EMULATOR: emulator,
  CONSOLE_PORT: port,
  CONSOLE_PATH: path,
  CONSOLE_ASSETS: assets,
  CONSOLE_PAGE: page,
} = process.env;
const RELOADS = "/esbuild";

const build = await context({
  entryPoints: ["src/main.ts"],
  bundle: true,
  format: "esm",
  target: "es2022",
  sourcemap: true,
  outdir: "built",
  write: false,
  logLevel: "info",
  // The page's policy allows no script but those that are loaded.
  banner: { js: `new EventSource("${RELOADS}").addEventListener("change", () => location.reload());` },
});
await build.watch();
const built = await build.serve({ host: "127.0.0.1", port: 0 });
const [sources, target] = [new URL(`http://127.0.0.1:${built.port}`), new URL(emulator)];

function forward(incoming, outgoing, to, address) {
  const headers = { ...incoming.headers, host: to.host };
  // The emulator refuses what other sites' pages ask for: only this server's own page becomes one of the emulator's.
  if (headers.origin === `http://${incoming.headers.host}`) headers.origin = to.origin;
  const options = { host: to.hostname, port: to.port || 80, method: incoming.method, path: address, headers };
  const asked = request(options, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  asked.on("error", (error) => {
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502).end(JSON.stringify({ error: `${to.origin} does not answer: ${error.message}` }));
  });
  outgoing.on("close", () => asked.destroy());
  incoming.pipe(asked);
}

const server = createServer((incoming, outgoing) => {
  const address = incoming.url;
  const { port: own } = server.address();
  if (![`127.0.0.1:${own}`, `localhost:${own}`].includes(incoming.headers.host)) {
    // Another name may be one that a foreign site has made to lead here.
    outgoing.writeHead(403).end(`Ask for http://127.0.0.1:${own}${path}.`);
  } else if (address === path || address === `${path}/`) {
    outgoing.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(page);
  } else if (address === RELOADS) {
    forward(incoming, outgoing, sources, address);
  } else if (address.startsWith(assets)) {
    forward(incoming, outgoing, sources, `/${address.slice(assets.length)}`);
  } else {
    forward(incoming, outgoing, target, address);
  }
});
server.on("error", (error) => {
  console.error(`The page cannot be served on port ${port}: ${error.message}`);
  process.exit(1);
});
server.listen(Number(port), "127.0.0.1", () => {
  console.log(
    `http://127.0.0.1:${server.address().port}${path} is made of the sources; its answers come from ${emulator}.`,
  );
});
