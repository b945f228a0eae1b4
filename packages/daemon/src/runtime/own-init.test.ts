import { expect, test } from "vitest";
import { type ImageStart, ownInit } from "./own-init.ts";

const NOTHING: ImageStart = { entrypoint: [], command: [] };

test.each<[string, Partial<ImageStart>, { command?: string[]; args?: string[] }, string | null]>([
  ["s6-overlay", { entrypoint: ["/init"] }, {}, "/init"],
  ["systemd", { command: ["/lib/systemd/systemd"] }, {}, "/lib/systemd/systemd"],
  ["systemd under its old name", { command: ["/sbin/init"] }, {}, "/sbin/init"],
  ["tini", { entrypoint: ["/usr/bin/tini", "--"], command: ["serve"] }, {}, "/usr/bin/tini"],
  ["dumb-init", { entrypoint: ["dumb-init"], command: ["serve"] }, {}, "dumb-init"],
  ["a server", { entrypoint: ["/usr/bin/vllm"], command: ["init"] }, {}, null],
  ["a server whose name only begins with init", { entrypoint: ["/usr/bin/initdb"] }, {}, null],
  ["no command at all", {}, {}, null],
  ["a command in place of the image's init", { entrypoint: ["/init"] }, { command: ["/app"] }, null],
  ["an init in place of the image's command", { entrypoint: ["/app"] }, { command: ["/init"] }, "/init"],
  ["arguments in place of the image's", { command: ["/sbin/init"] }, { args: ["/app"] }, null],
  ["arguments behind the image's init", { entrypoint: ["/init"] }, { args: ["/app"] }, "/init"],
])(
  "an init process that starts as process 1 is recognized: %s",
  (...[, image, { command = [], args = [] }, program]) => {
    expect(ownInit({ command, args }, { ...NOTHING, ...image })).toBe(program);
  },
);
