/*
 * Start-up of Node programs under `smdebug-emulator run`: AWS's clients reach the emulator, nothing reaches AWS.
 *
 * NODE_OPTIONS lets Node load it first. Clients that name no endpoint read AWS_ENDPOINT_URL. A request to an endpoint of
 * AWS's own goes to the emulator, with its bucket if the host's name has one. Any other connection to a name of AWS's is
 * refused when the name is looked up. Names under .localhost, which buckets have at the emulator, are this machine
 * whatever its resolver knows.
 */
"use strict";

const dns = require("dns");
const http = require("http");
const https = require("https");
const { syncBuiltinESMExports } = require("module");
const { urlToHttpOptions } = require("url");

const OF_AWS = /\.(amazonaws\.com(\.cn)?|api\.aws)\.?$/i;
const BUCKET_OF_AWS = /^(.+)\.s3[.-][^/]*$/i;

/** Node's three ways to call `request`, as one: options and a callback. */
function readArguments(input, options, callback) {
  if (typeof input === "string") input = new URL(input);
  if (!(input instanceof URL)) return [input, options];
  return typeof options === "function"
    ? [urlToHttpOptions(input), options]
    : [{ ...urlToHttpOptions(input), ...options }, callback];
}

function leadRequests(emulator) {
  const ask = emulator.protocol === "https:" ? https.request : http.request;
  for (const module of [http, https]) {
    const request = module.request;
    module.request = (...given) => {
      const [options, callback] = readArguments(...given);
      const host = options.hostname || options.host || "";
      if (!OF_AWS.test(host)) return request(...given);
      const bucket = BUCKET_OF_AWS.exec(host);
      const headers = Object.fromEntries(
        Object.entries(options.headers || {}).filter(([name]) => name.toLowerCase() !== "host"),
      );
      headers.host = bucket ? `${bucket[1]}.localhost:${emulator.port}` : emulator.host;
      const { agent, protocol, servername, ...kept } = options;
      const { hostname, port } = urlToHttpOptions(emulator);
      // The certificate is for the emulator's address, whatever bucket the header names.
      return ask({ ...kept, protocol: emulator.protocol, host: hostname, hostname, port, headers, servername: "" }, callback);
    };
    module.get = (...given) => {
      const asked = module.request(...given);
      asked.end();
      return asked;
    };
  }
}

function guardNames(emulator) {
  const lookUp = dns.lookup;
  const guarded = (name, options, callback) => {
    const local = String(name).toLowerCase().endsWith(".localhost") ? "localhost" : name;
    if (!OF_AWS.test(String(name))) return lookUp(local, options, callback);
    const text = `smdebug-emulator run keeps this program off AWS: ask the emulator instead, at ${emulator.origin}`;
    const refused = Object.assign(new Error(text), { code: "ENOTFOUND", syscall: "getaddrinfo", hostname: name });
    process.nextTick(callback || options, refused);
  };
  dns.lookup = Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(lookUp));
}

if (process.env.AWS_ENDPOINT_URL) {
  const emulator = new URL(process.env.AWS_ENDPOINT_URL);
  leadRequests(emulator);
  guardNames(emulator);
  syncBuiltinESMExports(); // what ES modules import by name is the changed functions, too
}
