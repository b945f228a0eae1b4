import { createHash } from "node:crypto";
import { TAB_ICON } from "./icon.ts";
import { STYLESHEET } from "./stylesheet.ts";

/** What pages link to. A name holds a hash of the content, so that browsers may keep it for ever. */
export interface Asset {
  readonly path: string;
  readonly type: string;
  readonly content: string;
}

export interface Assets {
  readonly stylesheet: Asset;
  readonly icon: Asset;
}

export function createAssets(): Assets {
  return {
    stylesheet: asset("style", "css", { type: "text/css; charset=utf-8", content: STYLESHEET }),
    icon: asset("icon", "svg", { type: "image/svg+xml", content: TAB_ICON }),
  };
}

function asset(name: string, extension: string, { type, content }: Pick<Asset, "type" | "content">): Asset {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  return { path: `/assets/${name}-${hash}.${extension}`, type, content };
}
