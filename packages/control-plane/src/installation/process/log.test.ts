import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createLog } from "./log.ts";

function logTo(lines: string[]): ReturnType<typeof createLog> {
  return createLog({ level: "info", destination: { write: (line) => void lines.push(line) } });
}

test("lines are JSON with a level name and an RFC 3339 time", () => {
  const lines: string[] = [];
  logTo(lines).info({ nodeId: "nod_1" }, "said");
  const line: unknown = JSON.parse(lines[0] ?? "");
  expect(line).toMatchObject({ level: "info", nodeId: "nod_1", msg: "said" });
  expect(line).toHaveProperty("time", expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/));
});

test("secrets in fields with telltale names are omitted, at the top level and one level down", () => {
  const lines: string[] = [];
  const secret = "s3cret";
  const log = logTo(lines);
  log.info({ token: secret, authorization: secret, headers: { authorization: secret }, keyValue: secret }, "x");
  log.info({ node: { providerToken: secret, password: secret }, request: { body: secret, headers: [secret] } }, "x");
  expect(lines).toHaveLength(2);
  expect(lines.join("")).not.toContain(secret);
});

const HOW_IT_ENDS = {
  "ends normally": "",
  "calls `process.exit`": "process.exit(0);",
  "throws an exception": "throw new Error('boom');",
};

test.each(Object.entries(HOW_IT_ENDS))(
  "everything that was logged is written when the process %s",
  async (_how, end) => {
    const program = `
    import { createLog } from ${JSON.stringify(new URL("log.ts", import.meta.url).href)};
    const log = createLog({ level: "info" });
    for (let n = 0; n < 1000; n++) log.info({ n }, "said");
    ${end}`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]).catch(
      (error: { readonly stdout: string }) => error,
    );
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { n: number }).n)).toEqual(
      Array.from({ length: 1000 }, (_, n) => n),
    );
  },
);
