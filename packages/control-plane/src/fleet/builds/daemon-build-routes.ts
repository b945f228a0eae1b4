import { createReadStream } from "node:fs";
import { daemonBuildListSchema } from "@fairlead/protocol/daemon-builds";
import type { FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import { clientAddress, networkOf } from "../../http/limits/client-address.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { byteRange } from "./daemon-build.ts";
import type { DaemonBuildService, LocatedDownload } from "./daemon-build-service.ts";
import type { DownloadSlots } from "./download-slots.ts";

const tags = ["Daemon builds"];

const listDaemonBuilds = {
  summary: "List the available daemon builds",
  description: "Newest first. Public: builds contain no secrets.",
  operationId: "listDaemonBuilds",
  tags,
  querystring: z.strictObject(pageQuery),
  response: { 200: daemonBuildListSchema },
} satisfies FastifySchema;

const downloadDaemonBuild = {
  summary: "Download a daemon build or its checksum",
  description:
    "The tar archive with a name from the list, or, with `.sha256` appended, its checksum line for `sha256sum --check`. " +
    "A `Range` header with a single range of bytes returns that part of an archive (206).",
  operationId: "downloadDaemonBuild",
  tags,
  errors: ["not_found"],
  params: z.object({ file: reference("The name of the file.") }),
  response: {
    200: {
      description: "The response.",
      content: { "application/gzip": { schema: z.string() }, "text/plain": { schema: z.string() } },
    },
  },
} satisfies FastifySchema;

export interface DaemonBuildRouteDeps {
  readonly daemonBuilds: DaemonBuildService;
  readonly slots: DownloadSlots;
}

/** A client that reads nothing for this long has disconnected or is blocking the connection. */
const STALL_MS = 60_000;

/** Public, because a machine that becomes a node has no credential yet. */
export function registerDaemonBuildRoutes(app: PlatformApp, { daemonBuilds, slots }: DaemonBuildRouteDeps): void {
  app.get("/v1/daemon-builds", { schema: listDaemonBuilds }, async (request) => {
    const builds = await daemonBuilds.list();
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: async ({ after, limit }) => {
        const start = after === null ? 0 : builds.findIndex(({ version }) => version === after) + 1;
        return builds.slice(start, start + limit);
      },
      cursorOf: ({ version }) => version,
    });
    return { daemonBuilds: [...items], nextPageToken, serverVersion: daemonBuilds.serverVersion };
  });

  app.get("/v1/daemon-builds/:file", { schema: downloadDaemonBuild }, async (request, reply) => {
    const download = await daemonBuilds.find(request.params.file);
    void reply.header("cache-control", "public, max-age=300");
    if (download.kind === "checksum") return reply.type("text/plain; charset=utf-8").send(download.text);
    holdSlot(request, reply, slots);
    return sendArchive(request, reply, download);
  });
}

/** @throws DomainError overloaded */
function holdSlot(request: FastifyRequest, reply: FastifyReply, slots: DownloadSlots): void {
  const giveBack = slots.take(networkOf(clientAddress(request)));
  reply.raw.once("close", giveBack);
  // Node resets the connection's timeout after this response.
  reply.raw.setTimeout(STALL_MS, () => request.raw.destroy());
}

function sendArchive(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { file, path }: LocatedDownload & { readonly kind: "archive" },
): FastifyReply {
  const { bytes } = file;
  const entityTag = `"${file.sha256}"`;
  const ifRange = headers["if-range"]?.toString();
  void reply.headers({ "accept-ranges": "bytes", etag: entityTag }).type("application/gzip");
  if (headers["if-none-match"] === entityTag) return reply.code(304).send();
  const range = byteRange(headers.range, bytes, { entityTag, ifRange });
  if (range === null) return reply.header("content-length", bytes).send(createReadStream(path));
  const { first, last } = range;
  return reply
    .code(206)
    .headers({ "content-range": `bytes ${first}-${last}/${bytes}`, "content-length": last - first + 1 })
    .send(createReadStream(path, { start: first, end: last }));
}
