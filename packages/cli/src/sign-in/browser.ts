import { spawn } from "node:child_process";
import type { Environment } from "../config.ts";

/** Opens a page in a browser on this machine. */
export type OpenBrowser = (url: string) => boolean;

/** The function returns whether it tried. Success is unknown, so the URL is always printed too. */
export function browserOpener(env: Environment, platform: NodeJS.Platform): OpenBrowser {
  const command = browserCommand(env, platform);
  if (command === null) return () => false;
  return (url) => {
    // No shell, so that the URL is always a single argument.
    const child = spawn(command, [url], { stdio: "ignore", detached: true });
    child.on("error", () => {});
    child.unref();
    return true;
  };
}

/** On Linux a browser needs a display, which SSH sessions usually lack. */
export function browserCommand(env: Environment, platform: NodeJS.Platform): string | null {
  if (platform === "darwin") return env["SSH_CONNECTION"] ? null : "open";
  if (platform !== "linux") return null;
  return env["DISPLAY"] || env["WAYLAND_DISPLAY"] ? "xdg-open" : null;
}
