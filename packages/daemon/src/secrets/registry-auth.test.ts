import { expect, test } from "vitest";
import type { RegistryAuth } from "../runtime/container-runtime.ts";
import { aSpec } from "../testing/builders.ts";
import { registryAuthFrom } from "./registry-auth.ts";

const loginOf = (text: string): RegistryAuth => {
  const opened = new TextEncoder().encode(text);
  const vault = { open: async () => opened, versionOf: () => "1.a" };
  return registryAuthFrom(vault, async () => undefined);
};
const asked = (image: string) => aSpec({ image, secrets: [{ name: "REG", as: "registry", version: "1.a" }] });

test.each([
  ["evil.example/team/engine:4", "evil.example"],
  ["registry.example/team/engine:4", "registry.example"],
  ["registry.example:5000.evil.example/engine", "registry.example:5000.evil.example"],
  ["team/engine:4", "docker.io"],
  ["Evil/engine:4", "evil"],
  ["169.254.169.254:80/engine", "169.254.169.254:80"],
])("a login is for the registry that it names, and is not sent for the image %s", async (image, other) => {
  const login = loginOf("registry.example:5000 robot:canary");
  const refusal = await login(asked(image)).catch((error: unknown) => String(error));
  expect(refusal).toContain(`the secret REG is a login for registry.example:5000, but the image is from ${other}`);
  expect(refusal).not.toContain("canary");
});

test.each(["team/engine", "docker.io/team/engine:4", "index.docker.io/team/engine", "registry-1.docker.io/engine"])(
  "the image %s belongs to Docker Hub",
  async (image) => {
    expect(await loginOf("docker.io robot:pass")(asked(image))).toEqual({ username: "robot", password: "pass" });
  },
);

test.each(["robot:pass", "registry.example robot", "registry.example  robot:pass", "registry.example robot:pa ss", ""])(
  "%j is not a login",
  async (text) => {
    await expect(loginOf(text)(asked("registry.example/engine"))).rejects.toThrow(
      "registry.example.com username:password",
    );
  },
);
