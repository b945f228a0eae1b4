import type { HttpApp } from "../http/http-app.ts";
import { registerAccountRoutes } from "./account-routes.ts";
import { registerAssetRoutes } from "./asset-routes.ts";
import { createAssets } from "./assets.ts";
import { FormGuard } from "./form-guard.ts";
import { registerInvitationRoutes } from "./invitation-routes.ts";
import { registerResetRoutes, registerSetUpRoutes } from "./link-routes.ts";
import type { PageServices } from "./page-deps.ts";
import { openPageScope } from "./page-scope.ts";
import { registerConsentRoutes, registerDeviceRoutes } from "./program-routes.ts";
import { registerProviderRoutes } from "./provider-routes.ts";
import { registerSignInRoutes } from "./sign-in-routes.ts";

/** Everything that people see of this host in a browser. */
export function registerPages(app: HttpApp, services: PageServices, randomBytes: (n: number) => Uint8Array): void {
  const { publicUrl, signIn } = services;
  const assets = createAssets();
  registerAssetRoutes(app, assets);
  const guard = new FormGuard({ publicUrl, randomBytes });
  const sessionOfCookie = signIn.sessionOfCookie.bind(signIn);
  openPageScope(app, { publicUrl, guard, assets, sessionOfCookie }, (scope) => {
    registerSignInRoutes(scope, services);
    registerProviderRoutes(scope, services);
    registerAccountRoutes(scope, services);
    registerSetUpRoutes(scope, services);
    registerResetRoutes(scope, services);
    registerInvitationRoutes(scope, services);
    registerDeviceRoutes(scope, services);
    registerConsentRoutes(scope, services);
  });
}
