import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const PACKAGES = ["protocol", "wire", "dialects", "hosting", "inference", "control-plane"];
const CHECKED = ["dialects", "inference", "control-plane"];

let copy = "";

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "fairlead-dialect-"));
  for (const name of PACKAGES) {
    const at = join("packages", name);
    mkdirSync(join(copy, at), { recursive: true });
    for (const part of ["package.json", "src"]) cpSync(join(root, at, part), join(copy, at, part), { recursive: true });
  }
  for (const modules of ["node_modules", "packages/control-plane/node_modules"]) {
    symlinkSync(join(root, modules), join(copy, modules));
  }
  const { compilerOptions } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8")) as {
    readonly compilerOptions: object;
  };
  const project = {
    compilerOptions: {
      ...compilerOptions,
      composite: false,
      declaration: false,
      noEmit: true,
      paths: Object.fromEntries(
        PACKAGES.map((name) => [`@fairlead/${name}/*`, [join(copy, "packages", name, "src/*.ts")]]),
      ),
    },
    include: CHECKED.map((name) => `packages/${name}/src`),
  };
  writeFileSync(join(copy, "tsconfig.json"), JSON.stringify(project));
});

afterAll(() => rmSync(copy, { recursive: true, force: true }));

test("a new dialect fails to compile in exactly one file until its record and converters exist", async () => {
  addDialect("messages");
  expect(await filesWithErrors()).toEqual(["packages/dialects/src/dialect-specs.ts"]);
});

function addDialect(name: string): void {
  const list = join(copy, "packages/protocol/src/providers.ts");
  const text = readFileSync(list, "utf8");
  const added = text.replace("export const DIALECTS = [", `export const DIALECTS = ["${name}", `);
  expect(added).not.toBe(text);
  writeFileSync(list, added);
}

function filesWithErrors(): Promise<string[]> {
  const tsc = join(root, "node_modules/.bin/tsc");
  return new Promise((resolve) => {
    execFile(tsc, ["-p", ".", "--pretty", "false"], { cwd: copy, maxBuffer: 2 ** 24 }, (_error, stdout) => {
      const lines = stdout.split("\n").filter((line) => line.includes("error TS"));
      resolve([...new Set(lines.map((line) => /^(.+?)\(\d+,\d+\): error/.exec(line)?.[1] ?? line))]);
    });
  });
}
