import { randomBytes } from "node:crypto";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Access } from "../access/access-room.ts";
import type { Chat } from "../chat/chat-room.ts";
import type { Fleet } from "../fleet/fleet-room.ts";
import type { Database } from "../installation/db/tables/schema.ts";
import { outgoingFetch } from "../installation/outgoing/outgoing-fetch.ts";
import { keptFor, type Retention } from "../installation/process/retention.ts";
import { asRoom, type Ground } from "../room.ts";
import { registerInvitationRoutes } from "./members/invitation-routes.ts";
import { InvitationService } from "./members/invitation-service.ts";
import { registerMemberRoutes } from "./members/member-routes.ts";
import { MemberService } from "./members/member-service.ts";
import { OneTimeLinkStore } from "./one-time-links/one-time-link-store.ts";
import { LinkEntryService } from "./pages/link-entry-service.ts";
import { registerPages } from "./pages/page-routes.ts";
import { ProjectRemovalService } from "./projects/project-removal-service.ts";
import { startProjectRemover } from "./projects/project-remover.ts";
import { registerProjectRoutes } from "./projects/project-routes.ts";
import type { ProjectStores } from "./projects/project-stores.ts";
import { registerOAuthRoutes } from "./sign-in/oauth/oauth-routes.ts";
import { OAuthStore } from "./sign-in/oauth/oauth-store.ts";
import { createSignInServices } from "./sign-in/sign-in-room.ts";
import { registerMeRoutes } from "./users/me-routes.ts";
import { SessionStore } from "./users/session-store.ts";

interface PeopleOptions extends Ground {
  readonly projectStores: ProjectStores;
  readonly access: Access;
  readonly fleet: Fleet;
  readonly chat: Chat;
}

/** Sign-in, browser pages and project members. */
export function openPeople({ config, log, clock, ids, bounds, installation, projects, ...options }: PeopleOptions) {
  const { publicUrl, limits, idempotency, fleet, projectStores: stores } = options;
  const { keys } = options.access;
  const { chatRemoval: chats } = options.chat;
  const { db, longReads, audit, users, sessions, oneTimeLinks: links } = installation;
  const { access } = projects;
  const outside = { publicUrl, fetch: outgoingFetch(config.proxy.rules), settings: config.signIn };
  const own = createSignInServices({ ...installation, ...outside, randomBytes, log, clock, ids, bounds });
  const { signIn, oidc, oauth, oauthTokens } = own;
  const entry = new LinkEntryService({ db, links, signIn, sessions, users });
  const members = new MemberService({ db, access, keys, links, audit });
  const invitations = new InvitationService({ clock, db, access, links, audit, publicUrl });
  const projectRemoval = new ProjectRemovalService({ clock, stores, access, keys, audit, ...fleet.removals, chats });
  return asRoom({
    /** Writes the configured OAuth clients to the store. */
    prepare: () => oauth.start(),
    routes: (app) => {
      const pages = { publicUrl, signIn, oidc, oauth, users, sessions, projects, invitations, entry, limits };
      registerPages(app, pages, randomBytes);
      registerMeRoutes(app, { users, sessions, projects });
      const { oauth: limit, deviceCodes } = limits;
      registerOAuthRoutes(app, { oauth, oauthTokens, publicUrl, limit, deviceCodes });
      registerProjectRoutes(app, { projects, projectRemoval, idempotency });
      registerMemberRoutes(app, members);
      registerInvitationRoutes(app, { invitations, idempotency, limit: limits.invitations });
    },
    runners: [() => startProjectRemover(projectRemoval, log)],
    retentions: peopleRetentions(longReads, clock),
  });
}

/** @param longReads so that deletions block no other statement. */
function peopleRetentions(longReads: Kysely<Database>, clock: Clock): readonly Retention[] {
  const sessions = new SessionStore(longReads);
  const tokens = new OAuthStore(longReads);
  const links = new OneTimeLinkStore(longReads);
  return [
    // Covers clock skew and the minute for which a session may be cached.
    keptFor({ what: "sign-in sessions", days: 1 / 24, clock, remove: (at, limit) => sessions.deleteEnded(at, limit) }),
    keptFor({ what: "tokens and codes", clock, remove: (at, limit) => tokens.deleteEnded(at, limit) }),
    // The audit log records who invited whom.
    keptFor({ what: "one-time links", days: 7, clock, remove: (at, limit) => links.deleteEnded(at, limit) }),
  ];
}
