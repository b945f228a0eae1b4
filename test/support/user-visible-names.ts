import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Names that users, their programs and their dashboards depend on, read from the generated pages (which match the code) and from log calls. */

const ROUTE = /`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s]*)`/g;
const SETTING = /^\| `([\w.]+)` \| `(FAIRLEAD_\w+)` \|/gm;
const ERROR = /^\| (\d{3}) \| `(\w+)` \| `(\w+)` \|/gm;
const METRIC = /^\| `(\w+(?:\{[\w,]+\})?)` \|/gm;
const COMMAND = /^## (fairlead[^\n]*)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm;
const FLAG = /(?<![\w-])(--[a-z][\w-]*)/g;
const STATUS = /^\| `([\w.]+)` \|/gm;
/** The fields of `log.info({ a, b: 1 }, "…")`, where the object fits on one line. */
const LOG_FIELDS = /\blog\??\.(?:debug|info|warn|error|fatal)\(\s*\{ ([^{}\n]*) \}/g;

/** @param root the repository. @returns one line for each name, sorted: its kind, then the name. */
export function userVisibleNames(root: string): string[] {
  const page = (name: string): string => readFileSync(join(root, "docs", name), "utf8");
  const all = (text: string, pattern: RegExp): string[] =>
    Array.from(text.matchAll(pattern), (match) => match.slice(1).join(" "));
  const names = [
    ...all(page("access.md"), ROUTE).map((name) => `route ${name}`),
    ...all(page("config.md"), SETTING).map((name) => `setting ${name}`),
    ...all(page("errors.md"), ERROR).map((name) => `error ${name}`),
    ...all(page("metrics.md"), METRIC).map((name) => `metric ${name}`),
    ...all(page("node-status.md"), STATUS).map((name) => `node status ${name}`),
    ...all(page("agent-status.md"), STATUS).map((name) => `agent status ${name}`),
    ...all(page("audit.md"), STATUS).map((name) => `audit ${name}`),
    ...Array.from(page("cli.md").matchAll(COMMAND)).flatMap(([, command = "", section = ""]) => [
      `command ${command}`,
      ...all(section, FLAG).map((flag) => `command ${command} ${flag}`),
    ]),
    ...exitCodes(page("cli.md")).map((code) => `exit code ${code}`),
    ...logFields(root).map((name) => `log field ${name}`),
  ];
  return [...new Set(names)].toSorted();
}

function exitCodes(page: string): string[] {
  const [sentence = ""] = /Exit codes:[^.]*\./.exec(page) ?? [];
  return sentence.match(/\d+/g) ?? [];
}

function logFields(root: string): string[] {
  const files = globSync("packages/*/src/**/*.ts", { cwd: root }).filter(
    (path) => !/\.(test|contract|fixture)\./.test(path),
  );
  return files.flatMap((file) =>
    Array.from(readFileSync(join(root, file), "utf8").matchAll(LOG_FIELDS)).flatMap(([, fields = ""]) =>
      fields
        .split(",")
        .map((field) => field.split(":")[0]?.trim() ?? "")
        .filter((field) => /^\w+$/.test(field)),
    ),
  );
}
