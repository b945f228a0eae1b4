import { Admission, type Ticket } from "@fairlead/hosting/requests/admission";
import { collectBody, declaredLength, tooLarge } from "@fairlead/hosting/requests/collect-body";
import { UploadPace } from "@fairlead/hosting/requests/upload-pace";
import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientAddress, networkOf } from "../limits/client-address.ts";

/** Reads bodies for the framework's routes, within a separate budget that clients share. */

/** Memory limits for bodies. */
export interface BodyRoom {
  readonly admission: Admission;
  readonly pace: UploadPace;
}

/** Bodies of these routes are small and short-lived. */
const LIMITS = { maxCallsInFlight: 4096, maxBufferedBytes: 64 * 1024 * 1024, ownerShare: 0.75 };
const BYTES_PER_SECOND = 16 * 1024;

/** @param reached called for every rejected body. */
export function bodyRoom(reached: () => void = () => undefined, pace?: UploadPace): BodyRoom {
  const admission = new Admission(LIMITS, { reached });
  return { admission, pace: pace ?? new UploadPace({ bytesPerSecond: BYTES_PER_SECOND, onSlow: () => undefined }) };
}

declare module "fastify" {
  interface FastifyInstance {
    bodies: BodyRoom;
  }
  interface FastifyRequest {
    /** Held until the end of the response; null if no body was read. */
    bodyTicket: Ticket | null;
  }
}

/** For `preParsing`. @throws DomainError `overloaded` */
export async function admitBody(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { headers } = request;
  if (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return;
  const ticket = request.server.bodies.admission.enter();
  reply.raw.once("close", () => ticket.leave());
  ticket.belongsTo(partyOf(request));
  request.bodyTicket = ticket;
}

/**
 * For `addContentTypeParser`, without `parseAs`.
 * @param maxBytes null: the route's limit. @param parse for the complete body.
 */
export function bodyParser<T>(
  maxBytes: number | null,
  parse: (request: FastifyRequest, body: Buffer) => T | Promise<T>,
): (request: FastifyRequest) => Promise<T> {
  return async (request) => {
    const { raw, bodyTicket: ticket, routeOptions, server } = request;
    if (ticket === null) return await parse(request, Buffer.alloc(0));
    const most = maxBytes ?? routeOptions.bodyLimit ?? 0;
    if (declaredLength(raw) > most) throw tooLarge(most);
    const limits = { ticket, pace: server.bodies.pace, maxBytes: most };
    const pieces = await collectBody({ source: raw, request: raw, explain: null }, limits);
    if (pieces === null)
      throw new DomainError("invalid_request", "The client disconnected before its body had arrived.");
    return await parse(request, Buffer.concat(pieces));
  };
}

/** Identifies the client by what is known when the body arrives. */
function partyOf(request: FastifyRequest): string {
  const { principal } = request;
  if (principal?.kind === "user") return principal.userId;
  if (principal?.kind === "node") return principal.nodeId;
  return networkOf(clientAddress(request));
}
