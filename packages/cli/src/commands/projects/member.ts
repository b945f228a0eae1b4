import { invitationSchema, type Member, memberSchema, ROLES, type Role } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { CliError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { fetchMe } from "../../platform/me.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";

interface InviteOptions extends ClientOptions {
  readonly role: Role;
}

const invitedSchema = z.object({ invitation: invitationSchema, url: z.string() });
const WHO = "a member's email address or ID";

export function addMemberCommands(program: Command, context: CommandContext): void {
  const member = program.command("member").description("members of a project and their roles");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(member.command(name)));
  addLimitOption(command("list"))
    .description("list a project's members and their roles")
    .addHelpText("after", "\nExample:\n  fairlead member list")
    .action((options: ClientOptions & ListOptions) => listMembers(context, options));
  command("invite")
    .description("invite a person to a project; prints a link to send to them")
    .argument("<email>")
    .option("--role <role>", ROLES.join(", "), parseRole, "member" as const)
    .addHelpText("after", "\nExample:\n  fairlead member invite ben@example.org --role admin")
    .action((email: string, options: InviteOptions) => invite(context, email, options));
  command("set-role")
    .description("change a member's role")
    .argument("<member>", WHO)
    .argument("<role>", ROLES.join(", "), parseRole)
    .addHelpText("after", "\nExample:\n  fairlead member set-role ben@example.org viewer")
    .action((who: string, role: Role, options: ClientOptions) => setRole(context, { who, role }, options));
  command("remove")
    .description("remove a member; their keys stop working immediately")
    .argument("<member>", WHO)
    .addHelpText("after", "\nExample:\n  fairlead member remove ben@example.org")
    .action((who: string, options: ClientOptions) => removeMember(context, who, options));
  command("leave")
    .description("leave a project; your keys in it stop working immediately")
    .addHelpText("after", "\nExample:\n  fairlead member leave --project prj_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((options: ClientOptions) => leave(context, options));
  addLimitOption(command("invitations"))
    .description("list unused invitations")
    .addHelpText("after", "\nExample:\n  fairlead member invitations")
    .action((options: ClientOptions & ListOptions) => listInvitations(context, options));
  command("revoke-invitation")
    .description("revoke an invitation; its link stops working")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead member revoke-invitation otl_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => revokeInvitation(context, id, options));
}

function parseRole(text: string): Role {
  const role = ROLES.find((known) => known === text);
  if (role === undefined) throw new InvalidArgumentError(`Must be one of ${ROLES.join(", ")}.`);
  return role;
}

async function listMembers(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const members = await allMembers(platformHost(context, options), options);
  print(context.terminal, { members }, { json: options.json, text: (answer) => memberTable(answer.members) });
}

function allMembers(host: PlatformConnection, options: ListOptions = {}): Promise<Member[]> {
  return listAll(host, { path: `${host.projectPath()}/members`, field: "members", item: memberSchema }, options);
}

async function invite(context: CommandContext, email: string, options: InviteOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${host.projectPath()}/members`;
  const body = { email, role: options.role };
  const call = { method: "POST", path, body, idempotencyKey: context.ids.next("request") } as const;
  const answer = await callJson(host, call, invitedSchema);
  print(context.terminal, answer, { json: options.json, text: ({ url }) => `${url}\n` });
  if (options.json) return;
  const { expiresAt } = answer.invitation;
  context.terminal.note(`send this link to ${visible(email)}: only they can use it, once, until ${expiresAt}`);
}

async function setRole(
  context: CommandContext,
  { who, role }: { readonly who: string; readonly role: Role },
  options: ClientOptions,
): Promise<void> {
  const host = platformHost(context, options);
  const userId = await findUserId(host, who);
  const body = { projectId: host.projectId(), userId, role };
  const changed = await callJson(host, { method: "PATCH", path: memberPath(host, userId), body }, memberSchema);
  print(context.terminal, changed, { json: options.json, text: (member) => memberTable([member]) });
}

async function removeMember(context: CommandContext, who: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = memberPath(host, await findUserId(host, who));
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `removed ${visible(who)}\n` });
}

async function leave(context: CommandContext, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const projectId = host.projectId();
  const { id } = await fetchMe(host);
  const answer = await callJson(host, { method: "DELETE", path: memberPath(host, id) }, z.object({}));
  if (context.logins.projectId(host.url) === projectId) await context.logins.useProject(host.url, null);
  print(context.terminal, answer, { json: options.json, text: () => `left ${projectId}\n` });
}

async function listInvitations(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: `${host.projectPath()}/invitations`, field: "invitations", item: invitationSchema };
  const invitations = await listAll(host, list, options);
  const rows = invitations.map(({ id, email, role, expiresAt }) => [id, email, role, expiresAt]);
  const table = rows.length === 0 ? "no unused invitations\n" : formatTable(["ID", "EMAIL", "ROLE", "EXPIRES"], rows);
  print(context.terminal, { invitations }, { json: options.json, text: () => table });
}

async function revokeInvitation(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${host.projectPath()}/invitations/${encodeURIComponent(id)}`;
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `revoked ${id}\n` });
}

function memberPath(host: PlatformConnection, userId: string): string {
  return `${host.projectPath()}/members/${encodeURIComponent(userId)}`;
}

/** The API takes user IDs; users know each other's email addresses. */
async function findUserId(host: PlatformConnection, who: string): Promise<string> {
  if (!who.includes("@")) return who;
  const email = who.trim().toLowerCase();
  const found = (await allMembers(host)).find((member) => member.email.toLowerCase() === email);
  if (found === undefined)
    throw new CliError(`${visible(who)} is not a member of this project. \`fairlead member list\` lists the members.`);
  return found.userId;
}

function memberTable(members: readonly Member[]): string {
  const rows = members.map(({ userId, email, role, createdAt }) => [userId, email, role, createdAt]);
  return formatTable(["USER", "EMAIL", "ROLE", "SINCE"], rows);
}
