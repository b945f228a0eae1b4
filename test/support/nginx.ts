import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const NGINX = "/usr/sbin/nginx";
export const hasNginx = existsSync(NGINX);

const OPERATIONS = new URL("../../docs/operations.md", import.meta.url);

/** The examples of docs/operations.md, in their order. */
export function nginxExamples(): string[] {
  return Array.from(readFileSync(OPERATIONS, "utf8").matchAll(/(?<=```nginx\n).*?(?=```)/gs), ([example]) => example);
}

export interface Nginx {
  stop(): Promise<void>;
}

/** @param http what stands in `http { … }`. */
export function startNginx(dir: string, http: string): Nginx {
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((of) => `${of}_temp_path ${dir}/${of};`);
  const head = `${user} pid ${dir}/nginx.pid; error_log ${dir}/error.log; daemon off; events {}`;
  const content = ["access_log off;", ...folders, http].join("\n");
  writeFileSync(join(dir, "nginx.conf"), `${head}\nhttp {\n${content}\n}\n`);
  const nginx: ChildProcess = spawn(NGINX, ["-c", join(dir, "nginx.conf"), "-e", join(dir, "error.log")], {
    stdio: "ignore",
  });
  return {
    stop: async () => {
      if (nginx.exitCode !== null) return;
      nginx.kill("SIGTERM");
      await once(nginx, "exit");
    },
  };
}
