// The runtime client of functions in Node: takes each event from Lambda's Runtime API, and posts what the handler makes
// of it. AWS's own, aws-lambda-ric, is a native module that has to be compiled for each version of Node.

import http from "node:http";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { format } from "node:util";

const RUNTIME = "/2018-06-01/runtime";
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
let requestId = "";

function send(method, place, body = "", headers = {}) {
  return new Promise((resolve, reject) => {
    const url = `http://${process.env.AWS_LAMBDA_RUNTIME_API}${RUNTIME}${place}`;
    const request = http.request(url, { method, agent, headers: { ...headers, "Content-Length": Buffer.byteLength(body) } }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => resolve({ headers: answer.headers, body: Buffer.concat(parts).toString() }));
    });
    request.on("error", reject);
    request.end(body);
  });
}

// Lambda's form of a line: when, in which request, how serious; the lines of one text stay one event of the log.
for (const [method, level] of [["log", "INFO"], ["info", "INFO"], ["debug", "DEBUG"], ["warn", "WARN"], ["error", "ERROR"]]) {
  console[method] = (...values) => {
    const text = format(...values).replaceAll("\n", "\r");
    fs.writeSync(1, `${new Date().toISOString()}\t${requestId || "undefined"}\t${level}\t${text}\n`);
  };
}

function describe(error, type) {
  const isError = error instanceof Error;
  return {
    errorType: type ?? (isError ? error.name : typeof error),
    errorMessage: isError ? error.message : String(error),
    trace: isError && error.stack ? error.stack.split("\n") : [],
  };
}

class UserCodeError extends Error {
  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

async function loadHandler(root, handler) {
  const [, name, inside] = /^([^.]*)\.(.+)$/.exec(path.basename(handler)) ?? [];
  if (!name) throw new UserCodeError("Runtime.MalformedHandlerName", `Bad handler: ${handler}`);
  const base = path.resolve(root, path.dirname(handler), name);
  const file = ["", ".js", ".mjs", ".cjs"].map((end) => base + end).find((each) => fs.statSync(each, { throwIfNoEntry: false })?.isFile());
  if (!file) throw new UserCodeError("Runtime.ImportModuleError", `Error: Cannot find module '${path.join(path.dirname(handler), name)}'`);
  const module = await import(pathToFileURL(file));
  const find = (from) => inside.split(".").reduce((found, part) => found?.[part], from);
  const found = find(module) ?? find(module.default);
  if (found === undefined) throw new UserCodeError("Runtime.HandlerNotFound", `${handler} is undefined or not exported`);
  if (typeof found !== "function") throw new UserCodeError("Runtime.HandlerNotFound", `${handler} is not a function`);
  return found;
}

function buildContext(headers) {
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  const parse = (text) => (text ? JSON.parse(text) : undefined);
  return {
    awsRequestId: headers["lambda-runtime-aws-request-id"],
    invokedFunctionArn: headers["lambda-runtime-invoked-function-arn"],
    clientContext: parse(headers["lambda-runtime-client-context"]),
    identity: parse(headers["lambda-runtime-cognito-identity"]),
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => deadline - Date.now(),
  };
}

// A handler answers by a promise, by its callback, or by its context; null is the answer of one that has nothing left to
// do and has done none of them.
function call(handler, event, context) {
  return new Promise((resolve, reject) => {
    const callback = (error, value) => (error ? reject(error) : resolve(value));
    Object.assign(context, { done: callback, succeed: resolve, fail: reject });
    const returned = handler(event, context, callback);
    if (typeof returned?.then === "function") returned.then(resolve, reject);
    process.removeAllListeners("beforeExit").once("beforeExit", () => resolve(undefined));
  });
}

let handler;
try {
  handler = await loadHandler(process.env.LAMBDA_TASK_ROOT, process.env._HANDLER);
} catch (error) {
  const described = describe(error, error.type ?? (error instanceof SyntaxError ? "Runtime.UserCodeSyntaxError" : undefined));
  console.error("Uncaught Exception", JSON.stringify(described));
  await send("POST", "/init/error", JSON.stringify(described));
  process.exit(1);
}
for (;;) {
  const { headers, body } = await send("GET", "/invocation/next");
  requestId = headers["lambda-runtime-aws-request-id"];
  process.env._X_AMZN_TRACE_ID = headers["lambda-runtime-trace-id"] ?? "";
  try {
    const value = await call(handler, JSON.parse(body), buildContext(headers));
    await send("POST", `/invocation/${requestId}/response`, JSON.stringify(value) ?? "null");
  } catch (error) {
    const described = describe(error);
    console.error("Invoke Error", JSON.stringify(described));
    await send("POST", `/invocation/${requestId}/error`, JSON.stringify(described), { "Lambda-Runtime-Function-Error-Type": described.errorType });
  }
}
