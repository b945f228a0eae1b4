/**
 * What an openclaw container runs around its gateway, next to the package's `openclaw.mjs`. As of openclaw 2026.9.6,
 * openclaw does not read model providers from the environment; reads a key file only at startup and on `secrets
 * reload`; gives clients from non-loopback addresses no permissions until they are approved inside the container; and
 * serves HTTP only if configured.
 *
 * As an agent it gets its project's models and keeps renewing its token. Relay clients are owners or admins, so they
 * are forwarded to loopback like clients of an SSH tunnel. As an engine it requires no token, like every engine.
 */
export const OPENCLAW_START = `
const { spawn } = process.getBuiltinModule("child_process");
const { existsSync, readFileSync } = process.getBuiltinModule("fs");
const { connect, createServer } = process.getBuiltinModule("net");
const { env } = process.getBuiltinModule("process");
const { setTimeout: sleep } = process.getBuiltinModule("timers/promises");

const { FAIRLEAD_MODEL, FAIRLEAD_TOKEN_FILE, HOME, OPENAI_BASE_URL, PORT } = env;
env.OPENCLAW_GATEWAY_PORT = String(PORT - 1);
const readToken = () => readFileSync(FAIRLEAD_TOKEN_FILE, "utf8").trim();
const say = (text) => process.stdout.write("[fairlead] " + text + "\\n");

function start(args, input) {
  const child = spawn(process.execPath, ["openclaw.mjs", ...args], { stdio: ["pipe", "inherit", "inherit"] });
  child.stdin.on("error", () => undefined).end(input);
  return child;
}
const ended = (child) => new Promise((resolve) => child.once("close", (code) => resolve(code ?? 1)));

async function listModels() {
  for (;;) {
    try {
      const answer = await fetch(OPENAI_BASE_URL + "/models", { headers: { authorization: "Bearer " + readToken() } });
      const body = await answer.json();
      if (answer.ok) return body.data.map(({ id }) => ({ id, name: id }));
      say("the inference host refuses to list models: " + (body.error?.message ?? answer.status));
    } catch (error) {
      say("the inference host did not return its models: " + (error.cause?.message ?? error.message));
    }
    await sleep(2000);
  }
}

/** Its own config stays as it is, but for what is named here. A model that somebody chose in it stays chosen. */
async function configure(patch) {
  const code = await ended(start(["config", "patch", "--stdin"], JSON.stringify(patch)));
  if (code !== 0) process.exit(code);
}

function asEngine() {
  const endpoints = { chatCompletions: { enabled: true }, responses: { enabled: true } };
  return { gateway: { mode: "local", auth: { mode: "none" }, http: { endpoints } } };
}

function asAgent(models) {
  const first = existsSync(HOME + "/.openclaw/openclaw.json") ? undefined : models[0]?.id;
  const model = FAIRLEAD_MODEL ?? first;
  const apiKey = { source: "file", provider: "fairlead", id: "value" };
  const provider = { baseUrl: OPENAI_BASE_URL, api: "openai-completions", apiKey, models };
  return {
    gateway: { mode: "local" },
    secrets: { providers: { fairlead: { source: "file", path: FAIRLEAD_TOKEN_FILE, mode: "singleValue" } } },
    models: { providers: { fairlead: provider } },
    ...(model && { agents: { defaults: { model: { primary: "fairlead/" + model } } } }),
  };
}

function letThrough() {
  const server = createServer({ allowHalfOpen: true }, (outer) => {
    const inner = connect({ port: PORT - 1, host: "127.0.0.1", allowHalfOpen: true });
    outer.on("error", () => inner.destroy()).pipe(inner);
    inner.on("error", () => outer.destroy()).pipe(outer);
  });
  server.listen(PORT, "0.0.0.0");
}

/** It may be withdrawn between two looks at it. */
function tokenIfThere() {
  try {
    return readToken();
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

/** A token that is withdrawn for a while comes back as another one. */
async function followToken(taken) {
  for (;;) {
    await sleep(1000);
    const token = tokenIfThere() ?? taken;
    if (token !== taken && (await ended(start(["secrets", "reload"]))) === 0) taken = token;
  }
}

let gateway = null;
// The container's first process: without a handler a signal would not end it.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (gateway ? gateway.kill(signal) : process.exit()));
const isAgent = FAIRLEAD_TOKEN_FILE !== undefined;
await configure(isAgent ? asAgent(await listModels()) : asEngine());
const token = isAgent ? readToken() : null;
gateway = start(["gateway", "--bind", "loopback"]);
letThrough();
if (isAgent) followToken(token).catch((error) => say("its token is no longer watched: " + error.message));
process.exitCode = await ended(gateway);
process.exit();
`.trim();
