import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { z } from "zod";
import type { State } from "./env-file.ts";
import type { Installation } from "./installation.ts";
import { QuickstartError } from "./progress.ts";

/** Calls the installation: local commands through the CLI, the rest through the API. */

export const CLI = "packages/cli/bin/fairlead.js";
export const DAEMON = "packages/daemon/bin/fairlead-daemon.js";
const ANSWER_MS = 30_000;

const createdUserSchema = z.object({ user: z.object({ id: z.string() }), created: z.boolean() });
const daemonStatusSchema = z.object({
  nodeId: z.string().nullable(),
  platformUrl: z.string().nullable(),
  enrolled: z.boolean(),
});
const tokenSchema = z.object({ token: z.string() });

export interface Administrator {
  readonly email: string;
  readonly name: string;
}

export async function ensureAdministrator(
  at: Installation,
  { email, name }: Administrator,
): Promise<{ created: boolean }> {
  const args = [
    "admin",
    "create-user",
    "--email",
    email,
    "--name",
    name,
    "--platform-admin",
    "--config",
    at.configFile,
  ];
  return runJson(at, [CLI, ...args], createdUserSchema);
}

export async function createToken(at: Installation, { email }: Administrator, ttl: string): Promise<string> {
  const args = ["admin", "token", "--email", email, "--ttl", ttl, "--config", at.configFile];
  return (await runJson(at, [CLI, ...args], tokenSchema)).token;
}

/** The node of the daemon's state folder and whether it is enrolled. */
export async function daemonStatus(at: Installation): Promise<z.infer<typeof daemonStatusSchema>> {
  return runJson(at, [DAEMON, "status", "--state-dir", at.daemonState], daemonStatusSchema);
}

async function runJson<T>(at: Installation, args: readonly string[], schema: z.ZodType<T>): Promise<T> {
  return schema.parse(JSON.parse(await runProgram(at, [...args, "--json"])));
}

/** @returns its stdout. @throws QuickstartError with its stderr if it fails */
export async function runProgram(at: Installation, [bin = "", ...args]: readonly string[]): Promise<string> {
  const argv = [join(at.root, bin), ...args];
  // In its own process group, so that Ctrl-C does not interrupt it.
  const child = spawn(process.execPath, argv, { cwd: at.root, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once("close", resolve)),
  ]);
  if (code !== 0) throw new QuickstartError(stderr.trim());
  return stdout;
}

/** Streams one response to this terminal. @returns whether it succeeded. */
export function chat(at: Installation, env: State, question: string): boolean {
  const argv = [join(at.root, CLI), "chat", question];
  return spawnSync(process.execPath, argv, { stdio: "inherit", env: { ...process.env, ...env } }).status === 0;
}

export interface Api {
  /** @returns the parsed response, or null for 401 and 404. @throws QuickstartError for other errors. */
  find<T>(path: string, schema: z.ZodType<T>): Promise<T | null>;
  create<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T>;
  update<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T>;
}

export function apiAt(url: string, credential: string): Api {
  const call = async (method: "GET" | "POST" | "PATCH", path: string, body?: object): Promise<Response> =>
    fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${credential}`, ...(body ? { "content-type": "application/json" } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  const change =
    (method: "POST" | "PATCH"): Api["create"] =>
    async (path, body, schema) => {
      const response = await call(method, path, body);
      if (!response.ok) throw await refused(path, response);
      return schema.parse(await response.json());
    };
  const refused = async (path: string, response: Response): Promise<QuickstartError> =>
    new QuickstartError(`${url}${path} returned ${response.status}: ${await response.text()}`);
  return {
    find: async (path, schema) => {
      const response = await call("GET", path);
      if (response.status === 401 || response.status === 404) return null;
      if (!response.ok) throw await refused(path, response);
      return schema.parse(await response.json());
    },
    create: change("POST"),
    update: change("PATCH"),
  };
}
