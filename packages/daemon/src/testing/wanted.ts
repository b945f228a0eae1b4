import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";

/** A desired state from a control plane. */
export function aWantedDaemon(changes: Partial<WantedDaemon> = {}): WantedDaemon {
  return {
    version: "2.0.0",
    request: "node:1",
    files: [{ arch: "x64", path: "/v1/daemon-builds/two.tar.gz", sha256: "ab".repeat(32), bytes: 1000 }],
    spreadSeconds: 0,
    ...changes,
  };
}
