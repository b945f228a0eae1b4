import { type ProjectKey, projectKeySchema } from "@fairlead/protocol/resources";
import { type Command, Option } from "commander";
import { z } from "zod";
import { CliError, UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { parseDuration } from "../../input/duration.ts";
import { readMoment } from "../../input/moment.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { type Call, callJson, Refused } from "../../platform/http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";
import { addLimitOptions, describeLimits, describeSpent, type LimitOptions, limitFields } from "./key-limits.ts";
import { addKeyWhoisCommand } from "./key-whois.ts";

interface CreateOptions extends ClientOptions, LimitOptions {
  readonly expires?: string;
}
interface UpdateOptions extends CreateOptions {
  readonly name?: string;
  readonly enable?: boolean;
  readonly disable?: boolean;
}
interface RotateOptions extends ClientOptions {
  readonly overlap?: number;
}

const withValueSchema = z.object({ key: projectKeySchema.required({ keyValue: true }) });

const EXPIRES = ["--expires <time>", "30d, 12h, 2026-12-31 (end of day), 2026-12-31T18:00:00Z, or none"] as const;

export function addKeyCommands(program: Command, context: CommandContext): void {
  const key = program.command("key").description("project keys, which programs use to call the inference host");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(key.command(name)));
  addKeyWhoisCommand(key, context);
  addLimitOptions(command("create"))
    .option(...EXPIRES)
    .description("create a project key; its value is shown only once")
    .argument("<name>")
    .addHelpText(
      "after",
      "\nExamples:\n  export FAIRLEAD_API_KEY=$(fairlead key create laptop)\n" +
        "  fairlead key create ci --expires 30d --model local/tinychat-6m --requests-per-minute 60",
    )
    .action((name: string, options: CreateOptions) => createKey(context, name, options));
  addLimitOption(command("list"))
    .description("list a project's keys and their limits")
    .addHelpText("after", "\nExample:\n  fairlead key list")
    .action((options: ClientOptions & ListOptions) => listKeys(context, options));
  command("get")
    .description("show a key and its limits, without its value")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead key get key_01kc3b6q2v8r5x0m7n4t9w1yzc --json")
    .action((id: string, options: ClientOptions) => getKey(context, id, options));
  addLimitOptions(command("update"))
    .option(...EXPIRES)
    .description("change a key's name or limits, or disable it; takes effect within one second")
    .argument("<id>")
    .option("--name <name>", "new name")
    .addOption(new Option("--disable", "disable the key").conflicts("enable"))
    .option("--enable", "re-enable the key")
    .addHelpText(
      "after",
      "\nExample:\n  fairlead key update key_01kc3b6q2v8r5x0m7n4t9w1yzc --budget-daily 5 --expires none",
    )
    .action((id: string, options: UpdateOptions) => updateKey(context, id, options));
  command("rotate")
    .description("give a key a new value; the old value keeps working for an overlap period")
    .argument("<id>")
    .option("--overlap <duration>", "how long the old value keeps working: 12h, 30m, 7d, or 0 for none", parseOverlap)
    .addHelpText(
      "after",
      "\nExample:\n  fairlead key rotate key_01kc3b6q2v8r5x0m7n4t9w1yzc --overlap 1h > key && chmod 600 key",
    )
    .action((id: string, options: RotateOptions) => rotateKey(context, id, options));
  command("delete")
    .description("delete a key; it stops working within one second")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead key delete key_01kc3b6q2v8r5x0m7n4t9w1yzc")
    .action((id: string, options: ClientOptions) => deleteKey(context, id, options));
}

async function createKey(context: CommandContext, name: string, options: CreateOptions): Promise<void> {
  const host = platformHost(context, options);
  const body = { projectId: host.projectId(), name, ...changesOf(options, context.clock.now()) };
  const call = { path: keysPath(host), body, idempotencyKey: context.ids.next("request") };
  const key = await callForValue(host, call, "Get a new value with `fairlead key rotate ID --overlap 0`.");
  showValue(context, key, options);
}

async function rotateKey(context: CommandContext, id: string, options: RotateOptions): Promise<void> {
  const host = platformHost(context, options);
  const body = options.overlap === undefined ? {} : { overlapSeconds: options.overlap };
  const path = `${keyPath(host, id)}:rotate`;
  const call = { path, body, idempotencyKey: context.ids.next("request") };
  const key = await callForValue(host, call, LOST_ROTATION);
  showValue(context, key, options);
}

const LOST_ROTATION =
  "The previous value keeps working until its overlap ends, but stops immediately if you rotate again. Create a second key for programs " +
  "that need one now (`fairlead key create`), or rotate again.";

/** The host does not store values, so a lost response cannot be repeated. @param advice how to get a new value. */
async function callForValue(
  host: PlatformConnection,
  call: Call,
  advice: string,
): Promise<z.infer<typeof withValueSchema>> {
  try {
    return await callJson(host, { ...call, method: "POST" }, withValueSchema);
  } catch (error) {
    if (!(error instanceof Refused && error.code === "already_exists")) throw error;
    throw new CliError(`${error.message}\nThe response with its value was lost. ${advice}`, { cause: error });
  }
}

function showValue(
  { terminal }: CommandContext,
  answer: z.infer<typeof withValueSchema>,
  { json }: ClientOptions,
): void {
  print(terminal, answer, { json, text: ({ key }) => `${key.keyValue}\n` });
  if (json) return;
  const { id, name } = answer.key;
  terminal.note(
    `key ${visible(name)} (${id}): this value is not shown again. Keep it in a secret manager, or in a file that only you can read,\n` +
      "and pass it to programs as FAIRLEAD_API_KEY (OPENAI_API_KEY for OpenAI's SDKs).",
  );
}

async function listKeys(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const keys = await listAll(host, { path: keysPath(host), field: "keys", item: projectKeySchema }, options);
  const text = keys.length === 0 ? "no keys; create one with `fairlead key create NAME`\n" : keyTable(context, keys);
  print(context.terminal, { keys }, { json: options.json, text: () => text });
}

async function getKey(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const key = await callJson(host, { path: keyPath(host, id) }, projectKeySchema);
  print(context.terminal, key, { json: options.json, text: (found) => keyTable(context, [found]) });
}

async function updateKey(context: CommandContext, id: string, options: UpdateOptions): Promise<void> {
  const host = platformHost(context, options);
  const body = {
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(options.enable ? { enabled: true } : {}),
    ...(options.disable ? { enabled: false } : {}),
    ...changesOf(options, context.clock.now()),
  };
  if (Object.keys(body).length === 0)
    throw new UsageError("nothing to change: set an option such as --disable or --expires 30d");
  const key = await callJson(host, { method: "PATCH", path: keyPath(host, id), body }, projectKeySchema);
  print(context.terminal, key, { json: options.json, text: (changed) => keyTable(context, [changed]) });
}

async function deleteKey(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: keyPath(host, id) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${id}\n` });
}

/** @param now Unix milliseconds. @throws UsageError */
function changesOf(options: CreateOptions, now: number): object {
  const { expires } = options;
  const limits = limitFields(options);
  return {
    ...(expires === undefined ? {} : { expiresAt: expiryFrom(expires, now) }),
    ...(limits === undefined ? {} : { limits }),
  };
}

function expiryFrom(text: string, now: number): string | null {
  if (text === "none") return null;
  const at = readMoment(text, { now, durations: "ahead", days: "end" });
  if (Date.parse(at) > now) return at;
  throw new UsageError(`${text} is in the past. To disable a key now, run: fairlead key update ID --disable`);
}

function keysPath(host: PlatformConnection): string {
  return `${host.projectPath()}/keys`;
}

function keyPath(host: PlatformConnection, id: string): string {
  return `${keysPath(host)}/${encodeURIComponent(id)}`;
}

function parseOverlap(text: string): number {
  return text === "0" ? 0 : parseDuration(text);
}

function keyTable({ clock }: CommandContext, keys: readonly ProjectKey[]): string {
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.keyId,
    stateOf(key, clock.now()),
    key.expiresAt ?? "never",
    describeLimits(key.limits).join(", ") || "none",
    describeSpent(key.spent),
  ]);
  return formatTable(["ID", "NAME", "KEY", "STATE", "EXPIRES", "LIMITS", "SPENT"], rows);
}

function stateOf({ enabled, expiresAt }: ProjectKey, now: number): string {
  if (!enabled) return "disabled";
  return expiresAt && Date.parse(expiresAt) <= now ? "expired" : "active";
}
