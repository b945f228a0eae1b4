import { existsSync, globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { bags, largeComposition } from "./support/composition-rules.ts";
import { houseRules } from "./support/house-rules.ts";
import { crowdedFolders, roomCycles, sharedNames, smallParts } from "./support/layout-rules.ts";
import { findViolations, type Source } from "./support/source-rules.ts";

const root = new URL("..", import.meta.url).pathname;

function readSources(): Source[] {
  const paths = globSync(["packages/*/src/**/*.ts", "scripts/**/*.ts"], { cwd: root });
  return paths
    .filter((path) => !/\.(test|contract|fixture)\.ts$|\/testing\//.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

describe("the source code", () => {
  test("follows the import rules", () => {
    const sources = readSources();
    expect(sources.length).toBeGreaterThan(30);
    expect(findViolations(sources, houseRules)).toEqual([]);
  });

  test("has no overcrowded folders", () => {
    const paths = globSync("packages/*/src/**/*", { cwd: root, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
    expect(paths.length).toBeGreaterThan(500);
    expect(crowdedFolders(paths)).toEqual([]);
  });

  test("exports each name once", () => {
    expect(sharedNames(readSources())).toEqual([]);
  });

  test("has no small files that are parts of another file", () => {
    const tests = new Set(globSync("packages/*/src/**/*.test.ts", { cwd: root }));
    expect(smallParts(readSources(), tests)).toEqual([]);
  });

  test("has no rooms that depend on each other", () => {
    expect(roomCycles(readSources())).toEqual([]);
  });

  test("keeps its composition small and its server root to one page", () => {
    expect(largeComposition(readSources())).toEqual([]);
  });

  test("passes rooms only what they use, not bags of everything", () => {
    expect(bags(readSources())).toEqual([]);
  });

  test("contains every path that docs/architecture.md names", () => {
    const map = readFileSync(join(root, "docs/architecture.md"), "utf8");
    const named = Array.from(
      map.matchAll(/`((?:packages|scripts|systemd|test|docs|\.ci)\/[\w./*-]*)`/g),
      ([, path]) => path,
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => path !== undefined && !exists(path))).toEqual([]);
  });
});

function exists(path: string): boolean {
  return path.includes("*") ? globSync(path, { cwd: root }).length > 0 : existsSync(join(root, path));
}

const server = "packages/control-plane/src";

describe("the rules", () => {
  const violations = (path: string, text: string): string[] => findViolations([{ path, text }], houseRules);

  test.each([
    ["a package in protocol", "packages/protocol/src/values/ids.ts", 'import { pino } from "pino";'],
    ["a package in wire", "packages/wire/src/liveness.ts", 'import { pino } from "pino";'],
    [
      "a server value in the daemon",
      "packages/daemon/src/daemon.ts",
      'import { x } from "@fairlead/control-plane/server";',
    ],
    [
      "another server type in the daemon",
      "packages/daemon/src/a.ts",
      'import type { X } from "@fairlead/control-plane/server";',
    ],
    ["the daemon in the server", `${server}/a.ts`, 'import type { X } from "@fairlead/daemon/main";'],
    ["a path into another package", "packages/cli/src/a.ts", 'import { x } from "../../protocol/src/ids.ts";'],
    ["a store in routes", `${server}/fleet/nodes/node-routes.ts`, 'import type { S } from "./node-store.ts";'],
    [
      "the database in routes",
      `${server}/fleet/nodes/node-routes.ts`,
      'import { open } from "../../installation/db/open.ts";',
    ],
    [
      "HTTP in a service",
      `${server}/fleet/nodes/node-service.ts`,
      'import { y } from "../../http/requests/validation.ts";',
    ],
    ["a service in a store", `${server}/fleet/nodes/node-store.ts`, 'import { y } from "./node-service.ts";'],
    [
      "a resource in auth/",
      `${server}/access/auth/access.ts`,
      'import type { P } from "../../people/projects/project-store.ts";',
    ],
    [
      "another resource's store",
      `${server}/access/keys/key-service.ts`,
      'import { s } from "../../fleet/nodes/node-store.ts";',
    ],
    [
      "a room in a service",
      `${server}/access/keys/key-service.ts`,
      'import type { Fleet } from "../../fleet/fleet-room.ts";',
    ],
    [
      "a clock in a rules file",
      `${server}/fleet/nodes/node-status.ts`,
      'import { read } from "../../installation/process/log.ts";',
    ],
    ["Docker in the reconcile loop", "packages/daemon/src/reconcile/loop.ts", 'import Docker from "dockerode";'],
    ["a fixture in the program", `${server}/server.ts`, 'import { aNode } from "./fleet/nodes/node.fixture.ts";'],
    ["a package with another owner", `${server}/fleet/nodes/node-store.ts`, 'import Sqlite from "better-sqlite3";'],
    [
      "a sub-path of an owned package",
      `${server}/fleet/nodes/a.ts`,
      'import { applyWSSHandler } from "@trpc/server/adapters/ws";',
    ],
    ["code of the openai package", "packages/dialects/src/convert/a.ts", 'import OpenAI from "openai";'],
    ["the file system in a dialect", "packages/dialects/src/convert/a.ts", 'import { readFileSync } from "node:fs";'],
    ["an import over several lines", `${server}/fleet/nodes/a.ts`, 'import {\n  SignJWT,\n  type JWK,\n} from "jose";'],
    ["a dynamic import", `${server}/fleet/nodes/a.ts`, 'const { pino } = await import("pino");'],
    ["a side-effect import", `${server}/fleet/nodes/a.ts`, 'import "ws";'],
    ["the environment outside config.ts", `${server}/installation/process/log.ts`, "const level = process.env.LEVEL;"],
    ["the system's time", `${server}/fleet/nodes/node.ts`, "const now = Date.now();"],
    ["a Date without arguments", `${server}/fleet/nodes/node.ts`, "const now = new Date();"],
    ["randomness", `${server}/fleet/nodes/node.ts`, "const id = randomUUID();"],
    ["the console", "scripts/check.ts", 'console.log("hi");'],
    ["JSON from outside without a limit", `${server}/models/providers/a.ts`, "const list = JSON.parse(text);"],
    ["JSON of a response without a limit", `${server}/fleet/machines/a.ts`, "const body = await response.json();"],
    ["JSON in the daemon without a limit", "packages/daemon/src/link/a.ts", "const body = JSON.parse(text);"],
    [
      "a barrel",
      "packages/protocol/src/index.ts",
      '/** All. */\nexport * from "./ids.ts";\nexport { a } from "./errors.ts";',
    ],
  ])("catch %s", (_what, path, text) => {
    expect(violations(path, text)).not.toEqual([]);
  });

  test.each([
    [
      "the router's types in the daemon",
      "packages/daemon/src/a.ts",
      'import type { R } from "@fairlead/control-plane/daemon-router";',
    ],
    [
      "another resource's service",
      `${server}/access/keys/key-service.ts`,
      'import { s } from "../../fleet/nodes/node-service.ts";',
    ],
    ["a room in another", `${server}/people/people-room.ts`, 'import type { Fleet } from "../fleet/fleet-room.ts";'],
    ["a store in the composition root", `${server}/server.ts`, 'import { s } from "./fleet/nodes/node-store.ts";'],
    [
      "types of the openai package",
      "packages/dialects/src/convert/a.ts",
      'import type { Response } from "openai/resources/responses/responses";',
    ],
    ["a Date of a given time", `${server}/fleet/nodes/node.ts`, "const at = new Date(now);"],
    [
      "the text of a comment",
      `${server}/fleet/nodes/node.ts`,
      "// never Date.now()\n/* nor\n   process.env */\nconst a = 1;",
    ],
    ["JSON from outside with a limit", `${server}/models/providers/a.ts`, "const list = parseJson(text);"],
    ["JSON from the store", `${server}/fleet/nodes/node-store.ts`, "const list = JSON.parse(row.list);"],
    ["a re-export beside code", "packages/protocol/src/a.ts", 'export { b } from "./b.ts";\nexport const a = 1;'],
  ])("allow %s", (_what, path, text) => {
    expect(violations(path, text)).toEqual([]);
  });

  test("report file, line and reason", () => {
    expect(violations(`${server}/installation/process/log.ts`, "\nconst level = process.env.LEVEL;")).toEqual([
      `${server}/installation/process/log.ts:2: settings are read in one place: process.env belongs to config.ts`,
    ]);
  });
});

describe("the layout", () => {
  const files = (folder: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${folder}/file-${index}.ts`);
  const source = (path: string, target: string): Source => ({ path, text: `import type { X } from "${target}";` });

  test.each([
    ["26 files in a folder", files("packages/daemon/src/link", 26)],
    ["ten wings", Array.from({ length: 10 }, (_, index) => `${server}/wing-${index}/a.ts`)],
    ["four files at the root of the server", files(server, 4)],
  ])("refuses %s", (_what, paths) => {
    expect(crowdedFolders(paths)).not.toEqual([]);
  });

  test("allows 25 files in a folder, and nine wings beside three files", () => {
    const wings = Array.from({ length: 9 }, (_, index) => `${server}/wing-${index}/a.ts`);
    expect(crowdedFolders([...files("packages/daemon/src/link", 25), ...wings, ...files(server, 3)])).toEqual([]);
  });

  const part = { path: "packages/daemon/src/link/part.ts", text: "export const a = 1;\n" };
  const user = (name: string): Source => source(`packages/daemon/src/link/${name}.ts`, "./part.ts");

  test("refuses a small file that only one other file imports", () => {
    expect(smallParts([part, user("a")], new Set())).toEqual([
      `${part.path}: at most 40 lines, for packages/daemon/src/link/a.ts alone; a part of it, not a file`,
    ]);
  });

  test("allows a small file with two importers, with its own test or for a composition, and a longer file", () => {
    expect(smallParts([part, user("a"), user("b")], new Set())).toEqual([]);
    expect(smallParts([part, user("a")], new Set(["packages/daemon/src/link/part.test.ts"]))).toEqual([]);
    expect(smallParts([part, source("packages/daemon/src/main.ts", "./link/part.ts")], new Set())).toEqual([]);
    expect(smallParts([{ ...part, text: "\n".repeat(41) }, user("a")], new Set())).toEqual([]);
  });

  test("refuses a name that two files export and reports both", () => {
    const twice = ["a", "b"].map((file) => ({
      path: `packages/daemon/src/${file}.ts`,
      text: "export interface Plan {}",
    }));
    expect(sharedNames(twice)).toEqual([
      "Plan: exported by packages/daemon/src/a.ts and packages/daemon/src/b.ts; one name per idea",
    ]);
  });

  test("allows a repeated name that is not exported, overloads, and the main function of each program", () => {
    const files = [
      { path: "packages/daemon/src/a.ts", text: "interface Plan {}\nexport function main(): void {}" },
      { path: "packages/cli/src/b.ts", text: "export interface Plan {}\nexport function main(): void {}" },
      {
        path: "packages/cli/src/c.ts",
        text: "export function f(a: string): void;\nexport function f(a: number): void;",
      },
    ];
    expect(sharedNames(files)).toEqual([]);
  });

  test("refuses rooms that depend on each other, even by a type, and reports the imports", () => {
    const there = source(`${server}/people/users/user.ts`, "../projects/project.ts");
    const back = source(`${server}/people/projects/project.ts`, "../users/user.ts");
    expect(roomCycles([there, back])).toEqual([
      `${there.path} -> project.ts, ${back.path} -> user.ts: rooms that need each other are one room; types count`,
    ]);
  });

  test("allows a one-way dependency, mutual imports within a room, and a composition that imports everything", () => {
    expect(
      roomCycles([
        source(`${server}/people/users/user.ts`, "../projects/project.ts"),
        source(`${server}/people/users/me/me-routes.ts`, "../user.ts"),
        source(`${server}/people/users/user.ts`, "./me/me-routes.ts"),
        source(`${server}/people/projects/project.ts`, "../../server.ts"),
        source(`${server}/server.ts`, "./people/projects/project.ts"),
      ]),
    ).toEqual([]);
  });
});

describe("a composition", () => {
  const lines = (count: number): string => "x\n".repeat(count);
  const path = `${server}/fleet/fleet-room.ts`;

  test.each([
    ["a root of 121 lines", [{ path: `${server}/server.ts`, text: lines(121) }]],
    [
      "1,701 lines in rooms",
      [
        { path, text: lines(900) },
        { path: `${server}/room.ts`, text: lines(801) },
      ],
    ],
    [
      "wiring in files with older names",
      ["access/key-services", "money/usage-retention", "chat/store/chat-stores"].map((name) => ({
        path: `${server}/${name}.ts`,
        text: lines(600),
      })),
    ],
  ])("refuses %s", (_what, sources) => {
    expect(largeComposition(sources)).not.toEqual([]);
  });

  test("allows a root of one page, and files of any length that do the work of rooms", () => {
    const root = { path: `${server}/server.ts`, text: lines(120) };
    expect(largeComposition([root, { path: `${server}/fleet/fleet-sweeper.ts`, text: lines(5000) }])).toEqual([]);
  });

  test.each([
    ["an interface that extends two others", "export interface AllServices extends KeyServices, NodeServices {}"],
    ["the same over several lines", "interface All\n  extends KeyDeps,\n    NodeOptions {\n  readonly a: string;\n}"],
    ["an intersection of two others", "type All = KeyServices & NodeStores;"],
    ["a part of a bag", 'const open = (services: Pick<Services, "keys">) => services;'],
  ])("refuses %s and reports where and why", (_what, text) => {
    expect(bags([{ path, text: `const a = 1;\n${text}` }])).toEqual([
      `${path}:2: a bag of other interfaces' fields; state the parameters that are used`,
    ]);
  });

  test.each([
    ["an interface of one other", "interface FleetOptions extends Ground {\n  readonly names: Names;\n}"],
    ["one that extends a room's options", "interface BillingOptions extends BillingServiceDeps {}"],
    ["a part of a service", 'readonly keys: Pick<KeyService, "get">;'],
    ["a bag outside of the control plane", "interface All extends KeyDeps, NodeDeps {}"],
  ])("allows %s", (what, text) => {
    const where = what.includes("outside") ? "packages/daemon/src/daemon.ts" : path;
    expect(bags([{ path: where, text }])).toEqual([]);
  });
});
