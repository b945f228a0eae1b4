import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Config, ConfigError, type ConfigMistake, loadConfig } from "./config.ts";
import { configReference } from "./config-reference.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-config-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

type Env = Record<string, string>;

function load(yaml: string, env: Env = {}): Config {
  const file = join(dir, "config.yaml");
  writeFileSync(file, yaml);
  return loadConfig({ file, env });
}

function mistakes(yaml: string, env: Env = {}): readonly ConfigMistake[] {
  try {
    load(yaml, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
  throw new Error("was accepted");
}

describe("the configuration", () => {
  test("requires nothing: every setting has a default, and paths are made absolute", () => {
    const config = loadConfig({ env: {} });
    expect(config.server).toMatchObject({ platform: { host: "127.0.0.1", port: 8080 }, publicUrl: null });
    expect(config.dataDir).toBe(join(process.cwd(), "fairlead-data"));
    expect(config.masterKeyFile).toBe(join(config.dataDir, "master.key"));
    expect(config.inference.maxBodyBytes).toBe(33_554_432);
  });

  test("comes from the file, and the environment takes precedence", () => {
    const yaml = "dataDir: /srv/fairlead\nserver:\n  platform: { port: 9000 }\n  publicUrl: https://a.example.org\n";
    const env = { FAIRLEAD_SERVER_PLATFORM_PORT: "9001", FAIRLEAD_LOG_LEVEL: "debug", FAIRLEAD_DATA_DIR: "" };
    const config = load(yaml, env);
    expect(config.server.platform).toEqual({ host: "127.0.0.1", port: 9001 });
    expect(config.server.publicUrl).toBe("https://a.example.org");
    expect(config.log.level).toBe("debug");
    expect(config.dataDir).toBe("/srv/fairlead");
    expect(config.masterKeyFile).toBe("/srv/fairlead/master.key");
  });

  test("lists the origins of pages that may call the inference host, or allows all of them", () => {
    const from = (text: string): Config => loadConfig({ env: { FAIRLEAD_INFERENCE_ALLOWED_ORIGINS: text } });
    expect(loadConfig({ env: {} }).inference.allowedOrigins).toEqual([]);
    expect(from("*").inference.allowedOrigins).toEqual(["*"]);
    expect(from("https://a.example, http://localhost:3000").inference.allowedOrigins).toEqual([
      "https://a.example",
      "http://localhost:3000",
    ]);
    for (const wrong of ["null", "https://a.example/", "https://*.example.com/x", "a.example"]) {
      expect(() => from(wrong)).toThrow(ConfigError);
    }
  });

  test("is deeply frozen", () => {
    const config = loadConfig({ env: {} });
    expect(() => Object.assign(config.server.platform, { port: 1 })).toThrow(TypeError);
  });

  test.each(["", "# nothing\n", "server:\n", "null"])("the file %j has no settings, or only defaults", (yaml) => {
    expect(["object", "undefined"]).toContain(typeof safely(() => load(yaml)));
  });

  test("all errors are reported together, each with its path", () => {
    const yaml = "dataDir: 5\nsever: {}\nserver:\n  platform: { port: 70000, prot: 1 }\n  publicUrl: ftp://x\n";
    const env = { FAIRLEAD_SERVER_INFERENCE_PORT: "http", FAIRLEAD_LOG_LEVEL: "loud", FAIRLEAD_SERVER_PORT: "1" };
    const paths = mistakes(yaml, env).map(({ path }) => path);
    expect(paths.toSorted()).toEqual([
      "FAIRLEAD_LOG_LEVEL",
      "FAIRLEAD_SERVER_INFERENCE_PORT",
      "FAIRLEAD_SERVER_PORT",
      "dataDir",
      "server.platform.port",
      "server.platform.prot",
      "server.publicUrl",
      "sever",
    ]);
  });

  test("a YAML error names the line, and errors in the environment are reported along with it", () => {
    const [first, second] = mistakes("dataDir: [\nserver: }\n", { FAIRLEAD_LOG_LEVEL: "loud" });
    expect(first?.path).toMatch(/config\.yaml:\d+:\d+$/);
    expect([first, second, ...mistakes("a: [", { FAIRLEAD_LOG_LEVEL: "loud" })].map((m) => m?.path)).toContain(
      "FAIRLEAD_LOG_LEVEL",
    );
  });

  test("a duplicate setting is an error", () => {
    expect(mistakes("dataDir: a\ndataDir: b\n")[0]?.message).toMatch(/unique/);
  });

  test.each(["- a\n- b\n", "just text", "server: 5", "server: [1]"])("the file %j is rejected", (yaml) => {
    expect(mistakes(yaml, { FAIRLEAD_SERVER_PLATFORM_PORT: "1" })).not.toEqual([]);
  });

  test("a missing file is an error", () => {
    expect(() => loadConfig({ file: join(dir, "none.yaml"), env: {} })).toThrow(/cannot be read: ENOENT/);
  });

  test.each([
    ["FAIRLEAD_DATADIR", "FAIRLEAD_DATA_DIR"],
    ["FAIRLEAD_SERVER_PUBLICURL", "FAIRLEAD_SERVER_PUBLIC_URL"],
  ])("%s is reported with the name that was meant", (name, meant) => {
    expect(mistakes("", { [name]: "x" })).toEqual([{ path: name, message: `unknown setting; did you mean ${meant}?` }]);
  });

  test("variables of clients and daemons are ignored", () => {
    const names = ["BASE_URL", "MODELS_URL", "TOKEN", "API_KEY", "PROJECT_ID", "NODE_ID", "MODEL", "DAEMON_STATE_DIR"];
    expect(() => loadConfig({ env: Object.fromEntries(names.map((name) => [`FAIRLEAD_${name}`, "x"])) })).not.toThrow();
  });

  test("a URL must not end with a slash, since paths are appended to it", () => {
    expect(mistakes("server: { publicUrl: 'https://x.example.org/' }")[0]?.message).toBe("must not end with a slash");
    expect(
      mistakes("server: { publicUrl: 'https://x.example.org/a?b=1', modelsUrl: 'https://u:p@x.example.org' }"),
    ).toEqual([
      { path: "server.publicUrl", message: "must not contain a query or fragment" },
      { path: "server.modelsUrl", message: "must not contain a user or password" },
    ]);
  });
});

test("docs/config.md matches the schema (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  expect(readFileSync(new URL("../../../../../docs/config.md", import.meta.url), "utf8")).toBe(configReference());
});

function safely<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
