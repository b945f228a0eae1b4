import { invitationSchema, type Member, memberSchema, ROLES, type Role } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type Platform,
  platformHost,
} from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { fetchMe } from "../me.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";
import { visible } from "../visible.ts";

interface InviteOptions extends ClientOptions {
  readonly role: Role;
}

const invitedSchema = z.object({ invitation: invitationSchema, url: z.string() });
const WHO = "a member's e-mail address or id";

export function addMemberCommands(program: Command, context: Context): void {
  const member = program.command("member").description("members: who belongs to a project, and as what");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(member.command(name)));
  addLimitOption(command("list"))
    .description("list a project's members with their roles")
    .addHelpText("after", "\nExample:\n  fairlead member list")
    .action((options: ClientOptions & ListOptions) => listMembers(context, options));
  command("invite")
    .description("invite somebody into a project; prints the link to send them")
    .argument("<email>")
    .option("--role <role>", ROLES.join(", "), parseRole, "member" as const)
    .addHelpText("after", "\nExample:\n  fairlead member invite ben@example.org --role admin")
    .action((email: string, options: InviteOptions) => invite(context, email, options));
  command("set-role")
    .description("give a member another role")
    .argument("<member>", WHO)
    .argument("<role>", ROLES.join(", "), parseRole)
    .addHelpText("after", "\nExample:\n  fairlead member set-role ben@example.org viewer")
    .action((who: string, role: Role, options: ClientOptions) => setRole(context, { who, role }, options));
  command("remove")
    .description("remove a member; their keys stop working at once")
    .argument("<member>", WHO)
    .addHelpText("after", "\nExample:\n  fairlead member remove ben@example.org")
    .action((who: string, options: ClientOptions) => removeMember(context, who, options));
  command("leave")
    .description("leave a project yourself; your keys in it stop working at once")
    .addHelpText("after", "\nExample:\n  fairlead member leave --project prj_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((options: ClientOptions) => leave(context, options));
  addLimitOption(command("invitations"))
    .description("list invitations that nobody has used yet")
    .addHelpText("after", "\nExample:\n  fairlead member invitations")
    .action((options: ClientOptions & ListOptions) => listInvitations(context, options));
  command("revoke-invitation")
    .description("take an invitation back; its link stops working")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead member revoke-invitation otl_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => revokeInvitation(context, id, options));
}

function parseRole(text: string): Role {
  const role = ROLES.find((known) => known === text);
  if (role === undefined) throw new InvalidArgumentError(`Write one of ${ROLES.join(", ")}.`);
  return role;
}

async function listMembers(context: Context, options: ClientOptions & ListOptions): Promise<void> {
  const members = await allMembers(platformHost(context, options), options);
  print(context.terminal, { members }, { json: options.json, text: (answer) => memberTable(answer.members) });
}

function allMembers(host: Platform, options: ListOptions = {}): Promise<Member[]> {
  return listAll(host, { path: `${host.projectPath()}/members`, field: "members", item: memberSchema }, options);
}

async function invite(context: Context, email: string, options: InviteOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${host.projectPath()}/members`;
  const body = { email, role: options.role };
  const call = { method: "POST", path, body, idempotencyKey: context.ids.next("request") } as const;
  const answer = await callJson(host, call, invitedSchema);
  print(context.terminal, answer, { json: options.json, text: ({ url }) => `${url}\n` });
  if (options.json) return;
  const { expiresAt } = answer.invitation;
  context.terminal.note(
    `send this link to ${visible(email)}: it is for them alone, and good for one use until ${expiresAt}`,
  );
}

async function setRole(
  context: Context,
  { who, role }: { readonly who: string; readonly role: Role },
  options: ClientOptions,
): Promise<void> {
  const host = platformHost(context, options);
  const userId = await findUserId(host, who);
  const body = { projectId: host.projectId(), userId, role };
  const changed = await callJson(host, { method: "PATCH", path: memberPath(host, userId), body }, memberSchema);
  print(context.terminal, changed, { json: options.json, text: (member) => memberTable([member]) });
}

async function removeMember(context: Context, who: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = memberPath(host, await findUserId(host, who));
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `removed ${visible(who)}\n` });
}

async function leave(context: Context, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const projectId = host.projectId();
  const { id } = await fetchMe(host);
  const answer = await callJson(host, { method: "DELETE", path: memberPath(host, id) }, z.object({}));
  if (context.logins.projectId(host.url) === projectId) await context.logins.useProject(host.url, null);
  print(context.terminal, answer, { json: options.json, text: () => `left ${projectId}\n` });
}

async function listInvitations(context: Context, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: `${host.projectPath()}/invitations`, field: "invitations", item: invitationSchema };
  const invitations = await listAll(host, list, options);
  const rows = invitations.map(({ id, email, role, expiresAt }) => [id, email, role, expiresAt]);
  const table = rows.length === 0 ? "no open invitations\n" : formatTable(["ID", "E-MAIL", "ROLE", "UNTIL"], rows);
  print(context.terminal, { invitations }, { json: options.json, text: () => table });
}

async function revokeInvitation(context: Context, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${host.projectPath()}/invitations/${encodeURIComponent(id)}`;
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `took back ${id}\n` });
}

function memberPath(host: Platform, userId: string): string {
  return `${host.projectPath()}/members/${encodeURIComponent(userId)}`;
}

/** People know each other by their addresses, the API by ids. */
async function findUserId(host: Platform, who: string): Promise<string> {
  if (!who.includes("@")) return who;
  const email = who.trim().toLowerCase();
  const found = (await allMembers(host)).find((member) => member.email.toLowerCase() === email);
  if (found === undefined)
    throw new CliError(`${visible(who)} is no member of this project. \`fairlead member list\` shows who is.`);
  return found.userId;
}

function memberTable(members: readonly Member[]): string {
  const rows = members.map(({ userId, email, role, createdAt }) => [userId, email, role, createdAt]);
  return formatTable(["USER", "E-MAIL", "ROLE", "SINCE"], rows);
}
