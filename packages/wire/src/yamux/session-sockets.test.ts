import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { YamuxSession } from "./session.ts";
import { FIRST_WINDOW_BYTES, type YamuxStream, type YamuxStreamHandler } from "./stream.ts";
import { CLOCK } from "./yamux.fixture.ts";

let server: Server;
let near: Socket;
let far: Socket;

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const arrived = new Promise<Socket>((resolve) => server.once("connection", resolve));
  near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  far = await arrived;
});

afterEach(() => {
  near.destroy();
  far.destroy();
  server.close();
});

/** Says again whatever it hears, no faster than that is heard. */
class Echo implements YamuxStreamHandler {
  readonly #stream: YamuxStream;

  constructor(stream: YamuxStream) {
    this.#stream = stream;
    stream.handle(this, 1024 * 1024);
  }

  onData(chunk: Buffer): boolean {
    return this.#stream.write(chunk);
  }

  onEnd(): void {
    this.#stream.end();
  }

  onDrain(): void {
    this.#stream.resume();
  }

  onClose(): void {
    // What the other side makes of it is what counts.
  }
}

/** Says its bytes as fast as they are taken, and hears them again. */
function hearEcho(stream: YamuxStream, bytes: Buffer): Promise<Buffer> {
  const heard: Buffer[] = [];
  let at = 0;
  const say = (): void => {
    while (at < bytes.length) {
      const piece = bytes.subarray(at, at + 50_000);
      at += piece.length;
      if (!stream.write(piece)) return;
    }
    stream.end();
  };
  return new Promise((resolve, reject) => {
    stream.handle({
      onData: (chunk) => heard.push(chunk) > 0,
      onEnd: () => undefined,
      onDrain: say,
      onClose: (failure) => (failure === null ? resolve(Buffer.concat(heard)) : reject(failure)),
    });
    say();
  });
}

function join(): { readonly session: YamuxSession; readonly ends: (string | undefined)[] } {
  const ends: (string | undefined)[] = [];
  new YamuxSession({
    clock: CLOCK,
    socket: far,
    onStream: (stream) => new Echo(stream),
    onClose: (reason) => void ends.push(reason?.message),
  });
  return {
    session: new YamuxSession({ clock: CLOCK, socket: near, onClose: (reason) => void ends.push(reason?.message) }),
    ends,
  };
}

test("sixty streams over one connection each carry their own bytes in both directions at the same time", async () => {
  const { session, ends } = join();
  const texts = Array.from({ length: 60 }, (_, at) =>
    Buffer.alloc(at % 3 === 0 ? 3 * FIRST_WINDOW_BYTES : 1000 * at, at),
  );
  const heard = await Promise.all(texts.map((bytes) => hearEcho(session.open(), bytes)));
  expect(heard.every((bytes, at) => texts[at]?.equals(bytes) === true)).toBe(true);
  session.end();
  await expect.poll(() => ends).toEqual([undefined, undefined]);
});

test("a connection reset ends both sessions and their streams", async () => {
  const { session, ends } = join();
  const heard = Array.from({ length: 5 }, () => hearEcho(session.open(), Buffer.alloc(8 * FIRST_WINDOW_BYTES)));
  far.resetAndDestroy();
  const over = await Promise.allSettled(heard);
  expect(new Set(over.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  await expect.poll(() => ends.length).toBe(2);
  expect(ends).not.toContain(undefined);
});
