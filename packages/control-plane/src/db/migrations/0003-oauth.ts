import { type Kysely, sql } from "kysely";
import { dialectOf } from "../dialect.ts";

/** The tables of the OAuth server, as @better-auth/oauth-provider 1.7 lays them out on SQLite; `0001-initial` tells of the dates. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = statementsFor(dialectOf(db) === "sqlite" ? "date" : "text");
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statementsFor = (date: string): readonly string[] => [
  `create table "jwks" ("id" text not null primary key, "publicKey" text not null, "privateKey" text not null, "createdAt" ${date} not null,
    "expiresAt" ${date}, "alg" text, "crv" text)`,
  `create table "oauthClient" ("id" text not null primary key, "clientId" text not null unique, "clientSecret" text, "clientDiscoveryId" text,
    "disabled" integer, "skipConsent" integer, "enableEndSession" integer, "subjectType" text, "scopes" text, "clientCredentialsScopes" text,
    "userId" text references "user" ("id") on delete cascade, "createdAt" ${date}, "updatedAt" ${date}, "name" text, "uri" text, "icon" text,
    "contacts" text, "tos" text, "policy" text, "softwareId" text, "softwareVersion" text, "softwareStatement" text, "redirectUris" text not null,
    "postLogoutRedirectUris" text, "backchannelLogoutUri" text, "backchannelLogoutSessionRequired" integer, "tokenEndpointAuthMethod" text,
    "applicationType" text, "jwks" text, "jwksUri" text, "grantTypes" text, "responseTypes" text, "requirePKCE" integer,
    "dpopBoundAccessTokens" integer, "referenceId" text, "metadata" text)`,
  `create table "oauthResource" ("id" text not null primary key, "identifier" text not null unique, "name" text not null, "accessTokenTtl" integer,
    "refreshTokenTtl" integer, "signingAlgorithm" text, "signingKeyId" text, "allowedScopes" text, "customClaims" text,
    "dpopBoundAccessTokensRequired" integer, "disabled" integer, "createdAt" ${date}, "updatedAt" ${date}, "policyVersion" integer, "metadata" text)`,
  `create table "oauthClientResource" ("id" text not null primary key,
    "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "resourceId" text not null references "oauthResource" ("identifier") on delete cascade, "metadata" text, "createdAt" ${date})`,
  `create table "oauthRefreshToken" ("id" text not null primary key, "token" text not null unique,
    "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "sessionId" text references "session" ("id") on delete set null, "userId" text not null references "user" ("id") on delete cascade,
    "referenceId" text, "authorizationCodeId" text, "resources" text, "requestedUserInfoClaims" text, "expiresAt" ${date} not null,
    "createdAt" ${date} not null, "revoked" ${date}, "rotatedAt" ${date}, "rotationReplayResponse" text, "rotationReplayExpiresAt" ${date},
    "authTime" ${date}, "confirmation" text, "scopes" text not null)`,
  `create table "oauthAccessToken" ("id" text not null primary key, "token" text not null unique,
    "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "sessionId" text references "session" ("id") on delete set null, "userId" text references "user" ("id") on delete cascade,
    "referenceId" text, "authorizationCodeId" text, "resources" text, "requestedUserInfoClaims" text,
    "refreshId" text references "oauthRefreshToken" ("id") on delete cascade, "expiresAt" ${date} not null, "createdAt" ${date} not null,
    "revoked" ${date}, "confirmation" text, "scopes" text not null)`,
  `create table "oauthConsent" ("id" text not null primary key, "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "userId" text references "user" ("id") on delete cascade, "referenceId" text, "resources" text, "requestedUserInfoClaims" text,
    "scopes" text not null, "createdAt" ${date} not null, "updatedAt" ${date} not null)`,
  `create table "oauthClientAssertion" ("id" text not null primary key, "expiresAt" ${date} not null)`,
  `create table "deviceCode" ("id" text not null primary key, "deviceCode" text not null, "userCode" text not null, "userId" text,
    "expiresAt" ${date} not null, "status" text not null, "lastPolledAt" ${date}, "pollingInterval" integer, "clientId" text, "scope" text,
    "resources" text, "oauthClientId" text)`,
  `create index "oauthClient_userId_idx" on "oauthClient" ("userId")`,
  `create index "oauthClientResource_clientId_idx" on "oauthClientResource" ("clientId")`,
  `create index "oauthClientResource_resourceId_idx" on "oauthClientResource" ("resourceId")`,
  `create index "oauthRefreshToken_clientId_idx" on "oauthRefreshToken" ("clientId")`,
  `create index "oauthRefreshToken_sessionId_idx" on "oauthRefreshToken" ("sessionId")`,
  `create index "oauthRefreshToken_userId_idx" on "oauthRefreshToken" ("userId")`,
  `create index "oauthRefreshToken_authorizationCodeId_idx" on "oauthRefreshToken" ("authorizationCodeId")`,
  `create index "oauthAccessToken_clientId_idx" on "oauthAccessToken" ("clientId")`,
  `create index "oauthAccessToken_sessionId_idx" on "oauthAccessToken" ("sessionId")`,
  `create index "oauthAccessToken_userId_idx" on "oauthAccessToken" ("userId")`,
  `create index "oauthAccessToken_authorizationCodeId_idx" on "oauthAccessToken" ("authorizationCodeId")`,
  `create index "oauthAccessToken_refreshId_idx" on "oauthAccessToken" ("refreshId")`,
  `create index "oauthConsent_clientId_idx" on "oauthConsent" ("clientId")`,
  `create index "oauthConsent_userId_idx" on "oauthConsent" ("userId")`,
  `create unique index "oauthClientResource_clientId_resourceId_uidx" on "oauthClientResource" ("clientId", "resourceId")`,
  `create unique index "deviceCode_deviceCode_uidx" on "deviceCode" ("deviceCode")`,
  `create unique index "deviceCode_userCode_uidx" on "deviceCode" ("userCode")`,
  // One account of a provider belongs to one user, whatever comes at the same time.
  `create unique index "account_provider_uidx" on "account" ("providerId", "accountId")`,
];
