import type { RateLimits } from "../../../http/limits/rate-limits.ts";
import type { InvitationService } from "../../members/invitation-service.ts";
import type { ProjectService } from "../../projects/project-service.ts";
import type { OAuthService } from "../../sign-in/oauth/oauth-service.ts";
import type { OidcService } from "../../sign-in/oidc/oidc-service.ts";
import type { SignInService } from "../../sign-in/sign-in-service.ts";
import type { SessionService } from "../../users/session-service.ts";
import type { UserService } from "../../users/user-service.ts";
import type { LinkEntryService } from "../link-entry-service.ts";

/** What pages call. */
export interface PageServices {
  readonly publicUrl: string;
  readonly signIn: SignInService;
  readonly oidc: OidcService;
  readonly oauth: OAuthService;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly projects: ProjectService;
  readonly invitations: InvitationService;
  readonly entry: LinkEntryService;
  readonly limits: Pick<RateLimits, "signIn" | "links" | "forms" | "deviceCodeTries">;
}
