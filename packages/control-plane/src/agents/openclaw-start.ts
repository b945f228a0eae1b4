/**
 * What the container of the guest `openclaw` runs in place of its gateway alone, beside the package's `openclaw.mjs`. Seen with openclaw
 * 2026.9.6: it takes no provider from the environment, reads a key from a file at its start and at `secrets reload` alone, and gives
 * operators from another address than loopback no rights before somebody approves them inside the container. Whoever comes through the relay is an
 * owner or admin, as whoever comes through an SSH tunnel, and so is let through to loopback in the same way; the gateway's own token it asks for all the same.
 */
export const OPENCLAW_START = `
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const { FAIRLEAD_MODEL, FAIRLEAD_TOKEN_FILE, HOME, OPENAI_BASE_URL, PORT } = process.env;
process.env.OPENCLAW_GATEWAY_PORT = String(PORT - 1);
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
      say("the inference host cannot be asked for models: " + (error.cause?.message ?? error.message));
    }
    await sleep(2000);
  }
}

/** Its own config stays as it is, but for where its models are. A model that somebody chose in it stays chosen. */
async function configure(models) {
  const first = existsSync(HOME + "/.openclaw/openclaw.json") ? undefined : models[0]?.id;
  const model = FAIRLEAD_MODEL ?? first;
  const apiKey = { source: "file", provider: "fairlead", id: "value" };
  const provider = { baseUrl: OPENAI_BASE_URL, api: "openai-completions", apiKey, models };
  const patch = {
    secrets: { providers: { fairlead: { source: "file", path: FAIRLEAD_TOKEN_FILE, mode: "singleValue" } } },
    models: { providers: { fairlead: provider } },
    gateway: { mode: "local" },
    ...(model && { agents: { defaults: { model: { primary: "fairlead/" + model } } } }),
  };
  const code = await ended(start(["config", "patch", "--stdin"], JSON.stringify(patch)));
  if (code !== 0) process.exit(code);
}

function letThrough() {
  const server = createServer({ allowHalfOpen: true }, (outer) => {
    const inner = connect({ port: PORT - 1, host: "127.0.0.1", allowHalfOpen: true });
    outer.on("error", () => inner.destroy()).pipe(inner);
    inner.on("error", () => outer.destroy()).pipe(outer);
  });
  server.listen(PORT, "0.0.0.0");
}

async function followToken(taken) {
  for (;;) {
    await sleep(1000);
    const token = readToken();
    if (token !== taken && (await ended(start(["secrets", "reload"]))) === 0) taken = token;
  }
}

await configure(await listModels());
const token = readToken();
const gateway = start(["gateway", "--bind", "loopback"]);
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => gateway.kill(signal));
letThrough();
followToken(token).catch((error) => say("its token is gone: " + error.message));
process.exitCode = await ended(gateway);
process.exit();
`.trim();
