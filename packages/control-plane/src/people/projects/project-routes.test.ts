import { projectSchema } from "@fairlead/protocol/resources";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { STORES } from "../../testing.fixture.ts";
import { errorOf, openProjectHost, type ProjectHost } from "./project-host.fixture.ts";

const SEED = 20_261_128;
const TEN_KB = 10_240;

/** Names that are kept as they are. */
const KEPT = [
  `Robert'); DROP TABLE project; --`,
  `<script>alert("1")</script>`,
  `"quoted" 'twice' \`thrice\` \\ / % _ ? :id`,
  "Ünïcødé 项目 🦊 👩‍👩‍👧‍👦 ‮backwards",
  "e\u0301 and é",
  "{{7*7}} ${7*7} #{7*7}",
  "null",
  "x".repeat(80),
];
/** Names that are refused. */
const REFUSED = [
  "",
  "   ",
  "x".repeat(TEN_KB),
  "🦊".repeat(81),
  "a\0b",
  "line\nbreak",
  "\u001b[31mred",
  "\ud800",
  "\udc00x",
];
describe.each(STORES)("projects over HTTP, on $name", (kind) => {
  let host: ProjectHost;
  let projectId: string;

  beforeAll(async () => {
    // So that the server looks for deletions only when somebody asks for one.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    host = await openProjectHost(kind);
  });
  afterAll(async () => {
    await host.close();
    vi.useRealTimers();
  });
  beforeEach(async () => {
    projectId = await host.createProject();
  });

  const call: ProjectHost["call"] = (...args) => host.call(...args);
  const project = (rest = ""): string => `/v1/projects/${projectId}${rest}`;

  test("have exactly the fields of the interface", async () => {
    const { body } = await call("GET", project());
    expect(Object.keys(z.object({}).loose().parse(body)).toSorted()).toEqual([
      "createdAt",
      "id",
      "name",
      "updatedAt",
      "userId",
    ]);
  });

  describe("deleting a project", () => {
    test.each(["", "?confirmName=", "?confirmName=support", "?confirmName=Support2"])(
      "requires its name, and says what is deleted with it: %j",
      async (query) => {
        const answer = await call("DELETE", project(query));
        expect([answer.status, errorOf(answer).param]).toEqual([400, "confirmName"]);
        expect(errorOf(answer).message).toMatch(/nodes.*keys.*members/);
        expect((await call("GET", project())).body).not.toHaveProperty("deletingSince");
      },
    );
    test("returns immediately, may be requested again, and ends in 404", async () => {
      await call("PATCH", project(), { body: { name: "Caf\u00e9 <b>&" } });
      const path = project(`?confirmName=${encodeURIComponent("Cafe\u0301 <b>&")}`);
      const first = await call("DELETE", path);
      expect([first.status, first.body]).toEqual([200, {}]);
      expect([200, 404]).toContain((await call("DELETE", path)).status);
      await expect.poll(async () => (await call("GET", project())).status).toBe(404);
      expect((await call("DELETE", path)).status).toBe(404);
    });

    test("is visible to owners while it lasts, and to nobody else", async () => {
      await host.enter(projectId, "ben", "admin");
      await host.markDeleting(projectId);
      expect((await call("GET", project())).body).toMatchObject({ deletingSince: "1970-01-01T00:00:00.001Z" });
      const listed = await call("GET", "/v1/projects?pageSize=200", { as: "ben" });
      expect(JSON.stringify(listed.body)).not.toContain(projectId);
      for (const [method, path, body] of [
        ["PATCH", "", { name: "Other" }],
        ["POST", "/keys", { name: "late" }],
        ["POST", "/members", { email: "late@example.org", role: "viewer" }],
        ["PATCH", `/members/${host.idOf("ben")}`, { role: "viewer" }],
      ] as const) {
        const owners = await call(method, project(path), { body });
        expect([owners.status, errorOf(owners).code], `${method} ${path}`).toEqual([409, "project_deleting"]);
        expect((await call(method, project(path), { as: "ben", body })).status).toBe(404);
      }
      const body = { projectId, planId: "byo", name: "late" };
      expect(errorOf(await call("POST", "/v1/nodes", { body })).code).toBe("project_deleting");
      for (const path of ["", "/members", "/invitations", "/audit"]) {
        expect((await call("GET", project(path))).status, path).toBe(200);
        expect((await call("GET", project(path), { as: "ben" })).status, path).toBe(404);
      }
    });
  });

  describe("names", () => {
    test.each(KEPT)("%j is kept unchanged", async (name) => {
      const made = await call("POST", "/v1/projects", { body: { name } });
      const { id } = z.object({ project: projectSchema }).parse(made.body).project;
      expect((await call("GET", `/v1/projects/${id}`)).body).toMatchObject({ name });
      const renamed = await call("PATCH", project(), { body: { name } });
      expect(renamed.body).toMatchObject({ id: projectId, name });
      expect((await call("GET", project())).body).toEqual(renamed.body);
    });

    test.each(REFUSED)("%j is rejected", async (name) => {
      for (const answer of [
        await call("POST", "/v1/projects", { body: { name } }),
        await call("PATCH", project(), { body: { name } }),
      ]) {
        expect([answer.status, errorOf(answer).param]).toEqual([400, "name"]);
      }
      expect((await call("GET", project())).body).toMatchObject({ name: "Support" });
    });

    test("of any text are kept exactly, or rejected", async () => {
      const characters = ["\0", "\ud800", "'", '"', "<", "%", "\u202e", "a", "🦊", " "];
      const unit = fc.oneof(fc.string({ unit: "binary", minLength: 1, maxLength: 1 }), fc.constantFrom(...characters));
      await fc.assert(
        fc.asyncProperty(fc.string({ unit }), async (name) => {
          const renamed = await call("PATCH", project(), { body: { name } });
          if (renamed.status !== 200) expect([renamed.status, errorOf(renamed).param]).toEqual([400, "name"]);
          else expect((await call("GET", project())).body).toMatchObject({ name: name.trim() });
        }),
        { numRuns: 150, seed: SEED },
      );
    });
  });
});
