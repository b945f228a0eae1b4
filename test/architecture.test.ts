import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { houseRules } from "./support/house-rules.ts";
import { findViolations, type Source } from "./support/source-rules.ts";

const root = new URL("..", import.meta.url).pathname;

function readSources(): Source[] {
  const paths = globSync(["packages/*/src/**/*.ts", "scripts/**/*.ts"], { cwd: root });
  return paths
    .filter((path) => !/\.(test|contract|fixture)\.ts$|\/testing\//.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

describe("the house", () => {
  test("keeps its import rules", () => {
    const sources = readSources();
    expect(sources.length).toBeGreaterThan(30);
    expect(findViolations(sources, houseRules)).toEqual([]);
  });

  test("names only paths that exist in the map, docs/architecture.md", () => {
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

describe("the rules", () => {
  const server = "packages/control-plane/src";
  const violations = (path: string, text: string): string[] => findViolations([{ path, text }], houseRules);

  test.each([
    ["a package in protocol", "packages/protocol/src/ids.ts", 'import { pino } from "pino";'],
    ["a package in wire", "packages/wire/src/liveness.ts", 'import { pino } from "pino";'],
    [
      "a server's value in the daemon",
      "packages/daemon/src/daemon.ts",
      'import { x } from "@fairlead/control-plane/server";',
    ],
    [
      "a server's other type in the daemon",
      "packages/daemon/src/a.ts",
      'import type { X } from "@fairlead/control-plane/server";',
    ],
    ["the daemon in the server", `${server}/a.ts`, 'import type { X } from "@fairlead/daemon/main";'],
    ["a path into another package", "packages/cli/src/a.ts", 'import { x } from "../../protocol/src/ids.ts";'],
    ["a store in routes", `${server}/nodes/node-routes.ts`, 'import type { S } from "./node-store.ts";'],
    ["the database in routes", `${server}/nodes/node-routes.ts`, 'import { open } from "../db/open.ts";'],
    ["HTTP in a service", `${server}/nodes/node-service.ts`, 'import { y } from "../http/validation.ts";'],
    ["a service in a store", `${server}/nodes/node-store.ts`, 'import { y } from "./node-service.ts";'],
    ["a resource in auth/", `${server}/auth/access.ts`, 'import type { P } from "../projects/project-store.ts";'],
    ["another resource's store", `${server}/keys/key-service.ts`, 'import { s } from "../nodes/node-store.ts";'],
    ["a clock in a rules file", `${server}/nodes/node-status.ts`, 'import { read } from "../log.ts";'],
    ["Docker in the reconcile loop", "packages/daemon/src/reconcile/loop.ts", 'import Docker from "dockerode";'],
    ["a fixture in the program", `${server}/server.ts`, 'import { aNode } from "./nodes/node.fixture.ts";'],
    ["a package with another owner", `${server}/nodes/node-store.ts`, 'import Sqlite from "better-sqlite3";'],
    [
      "a sub-path of an owned package",
      `${server}/nodes/a.ts`,
      'import { applyWSSHandler } from "@trpc/server/adapters/ws";',
    ],
    ["code of the openai package", `${server}/inference/bridge/a.ts`, 'import OpenAI from "openai";'],
    ["a clock in the bridge", `${server}/inference/bridge/a.ts`, 'import { systemClock } from "../limits.ts";'],
    ["an import over several lines", `${server}/nodes/a.ts`, 'import {\n  SignJWT,\n  type JWK,\n} from "jose";'],
    ["a dynamic import", `${server}/nodes/a.ts`, 'const { pino } = await import("pino");'],
    ["a side-effect import", `${server}/nodes/a.ts`, 'import "ws";'],
    ["the environment outside config.ts", `${server}/log.ts`, "const level = process.env.LEVEL;"],
    ["the system's time", `${server}/nodes/node.ts`, "const now = Date.now();"],
    ["an argument-less Date", `${server}/nodes/node.ts`, "const now = new Date();"],
    ["randomness", `${server}/nodes/node.ts`, "const id = randomUUID();"],
    ["the console", "scripts/check.ts", 'console.log("hi");'],
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
    ["another resource's service", `${server}/keys/key-service.ts`, 'import { s } from "../nodes/node-service.ts";'],
    ["a store in the composition root", `${server}/server.ts`, 'import { s } from "./nodes/node-store.ts";'],
    [
      "types of the openai package",
      `${server}/inference/bridge/a.ts`,
      'import type { Response } from "openai/resources/responses/responses";',
    ],
    ["a Date made from a given time", `${server}/nodes/node.ts`, "const at = new Date(now);"],
    [
      "what stands in a comment",
      `${server}/nodes/node.ts`,
      "// never Date.now()\n/* nor\n   process.env */\nconst a = 1;",
    ],
    ["a re-export beside code", "packages/protocol/src/a.ts", 'export { b } from "./b.ts";\nexport const a = 1;'],
  ])("allow %s", (_what, path, text) => {
    expect(violations(path, text)).toEqual([]);
  });

  test("give file, line and reason", () => {
    expect(violations(`${server}/log.ts`, "\nconst level = process.env.LEVEL;")).toEqual([
      `${server}/log.ts:2: settings are read in one place: process.env belongs to config.ts`,
    ]);
  });
});
