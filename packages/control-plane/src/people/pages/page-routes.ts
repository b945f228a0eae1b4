import type { HttpApp } from "../../http/http-app.ts";
import { registerAccountRoutes } from "./account-routes.ts";
import { type Assets, createAssets } from "./html/assets.ts";
import { FormGuard } from "./html/form-guard.ts";
import type { PageServices } from "./html/page-deps.ts";
import { errorPagesOf, openPageScope, PAGE } from "./html/page-scope.ts";
import { registerInvitationPages } from "./invitation-routes.ts";
import { registerResetRoutes, registerSetUpRoutes } from "./link-routes.ts";
import { registerConsentRoutes, registerDeviceRoutes } from "./program-routes.ts";
import { registerProviderPages } from "./provider-routes.ts";
import { registerSignInRoutes } from "./sign-in-routes.ts";

/** The stylesheet and the icon: public, and immutable under their names. */
function registerAssetRoutes(app: HttpApp, assets: Assets): void {
  for (const { path, type, content } of Object.values(assets)) {
    app.get(path, PAGE, async (_request, reply) =>
      reply
        .headers({ "content-type": type, "cache-control": "public, max-age=31536000, immutable" })
        .headers({ "cross-origin-resource-policy": "same-origin" })
        .send(content),
    );
  }
}

/** All pages of the platform host. */
export function registerPages(app: HttpApp, services: PageServices, randomBytes: (n: number) => Uint8Array): void {
  const { publicUrl, signIn, limits } = services;
  const assets = createAssets();
  registerAssetRoutes(app, assets);
  app.errorPages.render = errorPagesOf(publicUrl, assets);
  const guard = new FormGuard({ publicUrl, randomBytes });
  const sessionOfCookie = signIn.sessionOfCookie.bind(signIn);
  openPageScope(app, { publicUrl, guard, assets, sessionOfCookie, limit: limits.forms }, (scope) => {
    registerSignInRoutes(scope, services);
    registerProviderPages(scope, services);
    registerAccountRoutes(scope, services);
    registerSetUpRoutes(scope, services);
    registerResetRoutes(scope, services);
    registerInvitationPages(scope, services);
    registerDeviceRoutes(scope, services);
    registerConsentRoutes(scope, services);
  });
}
