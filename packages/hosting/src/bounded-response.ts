/** Reads what a fetch returned, up to a limit; undici would keep whatever comes. */

export class ResponseTooLarge extends Error {
  override readonly name = "ResponseTooLarge";
}

/** @throws ResponseTooLarge where the body is longer, without reading on. */
export async function boundedBody(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = new ResponseTooLarge(`the response is longer than ${maxBytes} bytes`);
  if (Number(response.headers.get("content-length") ?? 0) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge;
  }
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += piece.length;
    // Leaving the loop cancels the stream, and so the connection.
    if (length > maxBytes) throw tooLarge;
    pieces.push(piece);
  }
  return new Uint8Array(Buffer.concat(pieces));
}
