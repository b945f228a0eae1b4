import { expect, test } from "vitest";
import { createLog } from "./log.ts";

function logTo(lines: string[]): ReturnType<typeof createLog> {
  return createLog({ level: "info", destination: { write: (line) => void lines.push(line) } });
}

test("lines are JSON with a level's name and an RFC 3339 time", () => {
  const lines: string[] = [];
  logTo(lines).info({ nodeId: "nod_1" }, "said");
  const line: unknown = JSON.parse(lines[0] ?? "");
  expect(line).toMatchObject({ level: "info", nodeId: "nod_1", msg: "said" });
  expect(line).toHaveProperty("time", expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/));
});

test("secrets that slip in by name are left out, at the top and one level down", () => {
  const lines: string[] = [];
  const secret = "s3cret";
  const log = logTo(lines);
  log.info({ token: secret, authorization: secret, headers: { authorization: secret }, keyValue: secret }, "x");
  log.info({ node: { providerToken: secret, password: secret }, request: { body: secret, headers: [secret] } }, "x");
  expect(lines).toHaveLength(2);
  expect(lines.join("")).not.toContain(secret);
});
