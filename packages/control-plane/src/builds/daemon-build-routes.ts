import { createReadStream } from "node:fs";
import { daemonBuildListSchema } from "@fairlead/protocol/daemon-builds";
import type { FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { byteRange } from "./daemon-build.ts";
import type { DaemonBuildService, LocatedDownload } from "./daemon-build-service.ts";

const tags = ["Daemon builds"];

const listDaemonBuilds = {
  summary: "List the builds of the daemon that this platform offers",
  description: "The newest first. For everybody: a build holds no secret.",
  operationId: "listDaemonBuilds",
  tags,
  querystring: z.strictObject(pageQuery),
  response: { 200: daemonBuildListSchema },
} satisfies FastifySchema;

const downloadDaemonBuild = {
  summary: "Download a build of the daemon, or its checksum",
  description:
    "The tar whose name the list tells, or with `.sha256` behind that name the line that `sha256sum --check` reads. " +
    "A tar is sent in part where `Range` asks for one range of bytes (206).",
  operationId: "downloadDaemonBuild",
  tags,
  errors: ["not_found"],
  params: z.object({ file: reference("The name of the file.") }),
  response: {
    200: {
      description: "The answer.",
      content: { "application/gzip": { schema: z.string() }, "text/plain": { schema: z.string() } },
    },
  },
} satisfies FastifySchema;

/** For everybody, since a machine that becomes a node has no credential yet that reads. */
export function registerDaemonBuildRoutes(app: PlatformApp, daemonBuilds: DaemonBuildService): void {
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
    return sendArchive(request, reply, download);
  });
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
