import { spawn } from "node:child_process";
import type { Environment } from "../config.ts";

/** Opens a page in the person's browser, where this machine has one. */
export type OpenBrowser = (url: string) => boolean;

/** @returns a function that answers whether it tried. What comes of it only the person sees, so the address is always printed too. */
export function browserOpener(env: Environment, platform: NodeJS.Platform): OpenBrowser {
  const command = browserCommand(env, platform);
  if (command === null) return () => false;
  return (url) => {
    // No shell comes between: the address is one argument, whatever is in it.
    const child = spawn(command, [url], { stdio: "ignore", detached: true });
    child.on("error", () => {});
    child.unref();
    return true;
  };
}

/** Linux: a browser needs a display, which a machine behind SSH mostly lacks. */
export function browserCommand(env: Environment, platform: NodeJS.Platform): string | null {
  if (platform === "darwin") return env["SSH_CONNECTION"] ? null : "open";
  if (platform !== "linux") return null;
  return env["DISPLAY"] || env["WAYLAND_DISPLAY"] ? "xdg-open" : null;
}
