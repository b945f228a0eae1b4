import { expect, test } from "vitest";
import { configFileOf } from "./local-admin.ts";

test("FAIRLEAD_CONFIG names the configuration file, --config takes precedence, and an empty variable counts as unset", () => {
  expect(configFileOf({}, { FAIRLEAD_CONFIG: "/etc/a.yaml" })).toBe("/etc/a.yaml");
  expect(configFileOf({ config: "b.yaml" }, { FAIRLEAD_CONFIG: "/etc/a.yaml" })).toBe("b.yaml");
  expect(configFileOf({}, { FAIRLEAD_CONFIG: "" })).toBeUndefined();
});
