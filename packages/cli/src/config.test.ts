import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readSettings } from "./config.ts";

describe("readSettings", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "fairlead-cli-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test("prefers a flag to the environment, and the environment to the env file", () => {
    const envFile = join(folder, "quickstart.env");
    writeFileSync(envFile, "FAIRLEAD_MODEL=file\nFAIRLEAD_API_KEY=file\nFAIRLEAD_TOKEN=file\n");
    const env = { FAIRLEAD_MODEL: "env", FAIRLEAD_API_KEY: "env" };
    const settings = readSettings({ env, flags: { FAIRLEAD_MODEL: "flag" }, envFile });
    expect(settings.required("FAIRLEAD_MODEL")).toBe("flag");
    expect(settings.required("FAIRLEAD_API_KEY")).toBe("env");
    expect(settings.required("FAIRLEAD_TOKEN")).toBe("file");
  });

  test("treats an empty variable as unset, and uses the env file, then the default", () => {
    const envFile = join(folder, "quickstart.env");
    writeFileSync(envFile, "FAIRLEAD_API_KEY=file\nFAIRLEAD_MODEL=\n");
    const env = { FAIRLEAD_API_KEY: "", FAIRLEAD_MODELS_URL: "", FAIRLEAD_BASE_URL: "", FAIRLEAD_TOKEN: "" };
    const settings = readSettings({ env, flags: {}, envFile });
    expect(settings.required("FAIRLEAD_API_KEY")).toBe("file");
    expect([settings.baseUrl, settings.modelsUrl]).toEqual([null, "http://127.0.0.1:8081"]);
    expect([settings.find("FAIRLEAD_TOKEN"), settings.find("FAIRLEAD_MODEL")]).toEqual([null, null]);
  });

  test("says where a setting comes from", () => {
    const envFile = join(folder, "quickstart.env");
    writeFileSync(envFile, "FAIRLEAD_API_KEY=file\nFAIRLEAD_TOKEN=file\n");
    const settings = readSettings({ env: { FAIRLEAD_TOKEN: "env" }, flags: { FAIRLEAD_MODEL: "flag" }, envFile });
    const names = ["FAIRLEAD_MODEL", "FAIRLEAD_TOKEN", "FAIRLEAD_API_KEY", "FAIRLEAD_PROJECT_ID"] as const;
    expect(names.map((name) => settings.sourceOf(name))).toEqual(["an option", "the environment", envFile, null]);
  });

  test("returns no platform host when none is set, since a login may name one", () => {
    const settings = readSettings({ env: {}, flags: {} });
    expect([settings.baseUrl, settings.modelsUrl]).toEqual([null, "http://127.0.0.1:8081"]);
  });

  test("drops a trailing slash, so that paths can be appended", () => {
    expect(readSettings({ env: { FAIRLEAD_BASE_URL: "https://a.example/" }, flags: {} }).baseUrl).toBe(
      "https://a.example",
    );
  });

  test("reports all invalid settings together", () => {
    const env = { FAIRLEAD_BASE_URL: "ftp://a", FAIRLEAD_MODELS_URL: "nonsense" };
    expect(() => readSettings({ env, flags: {} })).toThrow(/FAIRLEAD_BASE_URL.*\n.*FAIRLEAD_MODELS_URL/);
  });

  test("says how to provide a missing setting", () => {
    const settings = readSettings({ env: {}, flags: {} });
    expect(() => settings.required("FAIRLEAD_API_KEY")).toThrow(/FAIRLEAD_API_KEY is not set.*--env-file/);
  });

  test("says so when the env file cannot be read", () => {
    const envFile = join(folder, "absent");
    expect(() => readSettings({ env: {}, flags: {}, envFile })).toThrow(/Cannot read the env file/);
  });
});
