import { z } from "zod";
import { FORM_TOKEN } from "../../packages/control-plane/src/people/pages/html/fields.ts";
import { at, type Call, type MakeCall } from "./call.ts";
import { PASSWORD, type Person, PROVIDER, type World } from "./world.ts";

/** How the routes for people are called: themselves, pages, and letting programs in. */

const CLIENT = "fairlead-cli";

/** A page that needs nobody to be signed in; the form's token is the sign-in page's. */
const openForm =
  (path: string | MakeCall, fields: Readonly<Record<string, string>> = {}): MakeCall =>
  async (world, caller) => {
    const call = typeof path === "string" ? { path } : await path(world, caller);
    const visitor = world.newVisitor();
    const token = await visitor.formToken("/sign-in");
    return { ...call, cookie: visitor.cookie, form: { ...fields, [FORM_TOKEN]: token } };
  };

type Fields = Readonly<Record<string, string>>;

/** A form of somebody who is signed in: a new person for the cell, since forms change them. Other callers have no cookie to speak of. */
const ownForm =
  (path: string, fields: (person: Person) => Promise<Fields> | Fields = () => ({})): MakeCall =>
  async (world, caller) => {
    if (caller !== "browser") return { path, form: {} };
    const person = await world.newPerson();
    const token = await person.visitor.formToken("/account");
    return { path, cookie: person.visitor.cookie, form: { ...(await fields(person)), [FORM_TOKEN]: token } };
  };

/** One more session of the caller's own, to be ended. */
const sessionOfCaller: MakeCall = async (world, caller) => {
  const sessionId = await world.anotherSessionOf(caller);
  return { path: `/v1/me/sessions/${sessionId ?? "sis_none"}` };
};

const resetPath: MakeCall = async (world) => ({ path: await world.resetPath() });

const invitationPath: MakeCall = async (world) => ({ path: (await world.invite()).path });

const deviceAnswer = z.object({ device_code: z.string(), user_code: z.string() });

async function askForDevice(world: World): Promise<z.infer<typeof deviceAnswer>> {
  const body = new URLSearchParams({ client_id: CLIENT, scope: "offline_access" });
  const response = await fetch(`${world.server.platformUrl}/v1/oauth/device/code`, { method: "POST", body });
  return deviceAnswer.parse(await response.json());
}

/** A device that its person has let in, and that has not fetched its token yet. */
const approvedDevice: MakeCall = async (world) => {
  const { device_code, user_code } = await askForDevice(world);
  const page = `/device?user_code=${user_code}`;
  await world.visitor.submit(page, { user_code, decision: "allow", started: "yes" }, "/device/decision");
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  return { path: "/v1/oauth/token", form: { grant_type, device_code, client_id: CLIENT } };
};

const authorizePath = `/v1/oauth/authorize?${new URLSearchParams({
  client_id: CLIENT,
  redirect_uri: "http://127.0.0.1:45454/callback",
  response_type: "code",
  state: "matrix",
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256",
}).toString()}`;

const consentPage = async (world: World): Promise<string> => {
  const { location } = await world.visitor.open(authorizePath);
  return location.replace(world.server.platformUrl, "");
};

const consent: MakeCall = async (world, caller) => {
  if (caller !== "browser") return { path: "/consent", form: {} };
  const page = await consentPage(world);
  const token = await world.visitor.formToken(page);
  const query = page.slice(page.indexOf("?") + 1);
  return { path: "/consent", cookie: world.visitor.cookie, form: { query, decision: "allow", [FORM_TOKEN]: token } };
};

const deviceDecision: MakeCall = async (world, caller): Promise<Call> => {
  const path = "/device/decision";
  if (caller !== "browser") return { path, form: {} };
  const { user_code } = await askForDevice(world);
  const token = await world.visitor.formToken(`/device?user_code=${user_code}`);
  return { path, cookie: world.visitor.cookie, form: { user_code, decision: "refuse", [FORM_TOKEN]: token } };
};

export const PERSON_CALLS: Readonly<Record<string, MakeCall>> = {
  "GET /": at("/"),
  "GET /.well-known/oauth-authorization-server": at("/.well-known/oauth-authorization-server"),
  "GET /.well-known/openid-configuration": at("/.well-known/openid-configuration"),
  "GET /account": at("/account"),
  "POST /account/name": ownForm("/account/name", () => ({ name: "Somebody" })),
  "POST /account/password": ownForm("/account/password", () => ({ current: PASSWORD, next: `${PASSWORD} anew` })),
  "POST /account/providers/{provider}": ownForm(`/account/providers/${PROVIDER}`),
  "POST /account/providers/{provider}/disconnect": ownForm(
    `/account/providers/${PROVIDER}/disconnect`,
    async ({ link }) => {
      await link();
      return {};
    },
  ),
  "POST /account/sessions": ownForm("/account/sessions", async ({ anotherSession }) => ({
    session: await anotherSession(),
  })),
  "GET /assets/{file}": async (world) => ({ path: await world.stylesheetPath() }),
  "GET /consent": async (world) => ({ path: await consentPage(world) }),
  "POST /consent": consent,
  "GET /device": at("/device"),
  "POST /device": ownForm("/device", () => ({ user_code: "ABCD-EFGH" })),
  "POST /device/decision": deviceDecision,
  "GET /invitations/{token}": invitationPath,
  "POST /invitations/{token}": openForm(invitationPath, { email: "", name: "Somebody", password: PASSWORD }),
  "GET /reset/{token}": resetPath,
  "POST /reset/{token}": openForm(resetPath, { email: "", password: PASSWORD }),
  "GET /set-up/{token}": at(`/set-up/fli_${"a".repeat(43)}`),
  "POST /set-up/{token}": openForm(`/set-up/fli_${"a".repeat(43)}`),
  "GET /sign-in": at("/sign-in"),
  "POST /sign-in": async (world, caller) => {
    const { email } = await world.newPerson();
    return openForm("/sign-in", { email, password: PASSWORD })(world, caller);
  },
  "GET /sign-in/{provider}/callback": () => ({
    path: `/sign-in/${PROVIDER}/callback?state=x&code=y`,
    letIn: ["This sign-in was started in another browser"],
  }),
  "POST /sign-in/{provider}": openForm(`/sign-in/${PROVIDER}`),
  "POST /sign-out": async (world) => {
    const { visitor } = await world.newPerson();
    const form = { return_to: "/account", [FORM_TOKEN]: await visitor.formToken("/account") };
    return { path: "/sign-out", cookie: visitor.cookie, form };
  },
  "GET /v1/me": at("/v1/me"),
  "PATCH /v1/me": () => ({ path: "/v1/me", body: { name: "Somebody" } }),
  "GET /v1/me/sessions": at("/v1/me/sessions"),
  "DELETE /v1/me/sessions/{id}": sessionOfCaller,
  "GET /v1/oauth/authorize": at(authorizePath),
  "POST /v1/oauth/device/code": () => ({ path: "/v1/oauth/device/code", form: { client_id: CLIENT } }),
  "POST /v1/oauth/revoke": () => ({ path: "/v1/oauth/revoke", form: { client_id: CLIENT, token: "none" } }),
  "POST /v1/oauth/token": approvedDevice,
};
