import type { HttpApp } from "../http/http-app.ts";
import type { Assets } from "./assets.ts";
import { PAGE } from "./page-scope.ts";

/** The stylesheet and the icon: the same for everybody, and for ever under their names. */
export function registerAssetRoutes(app: HttpApp, assets: Assets): void {
  for (const { path, type, content } of Object.values(assets)) {
    app.get(path, PAGE, async (_request, reply) =>
      reply
        .headers({ "content-type": type, "cache-control": "public, max-age=31536000, immutable" })
        .headers({ "cross-origin-resource-policy": "same-origin" })
        .send(content),
    );
  }
}
