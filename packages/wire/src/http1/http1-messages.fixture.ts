import fc from "fast-check";

/** Responses in HTTP/1.1 as a hostile upstream might send them: composed of likely and unlikely parts, then mutated byte by byte. */

export interface GeneratedResponse {
  readonly pieces: readonly Buffer[];
  readonly forHead: boolean;
}

const TCHAR = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,12}$/;
const text = (pattern: RegExp): fc.Arbitrary<string> => fc.stringMatching(pattern);

const statusLine = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom("HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.0 200 OK", "HTTP/1.1 200 "),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "HTTP/1.1 200",
      "HTTP/1.1 204 No Content",
      "HTTP/1.1 304 Not Modified",
      "HTTP/1.1 999 x",
      "HTTP/1.1 600",
      "HTTP/2.0 200 OK",
      "HTTP/1.2 200 OK",
      "HTTP/0.9 200 OK",
      "http/1.1 200 OK",
      "HTTP/1.1  200 OK",
      "HTTP/1.1 20 OK",
      "HTTP/1.1 2000 OK",
      "HTTP/1.1 099 OK",
      "HTTP/1.1 200\tOK",
      " HTTP/1.1 200 OK",
      "\r\nHTTP/1.1 200 OK",
      "ICY 200 OK",
      "HTTP/1.1 101 Switching Protocols",
      "HTTP/1.1 100 Continue",
      "HTTP/1.1 205 Reset Content",
      "HTTP/1.1 200 \x80\xff",
    ),
  },
);

const length = fc.constantFrom(
  "0",
  "1",
  "5",
  "05",
  "10",
  "",
  "+5",
  "-1",
  "5, 5",
  "5 5",
  "0x5",
  "5\t",
  "99999999999999999999",
  "5;",
);
const coding = fc.constantFrom(
  "chunked",
  "Chunked",
  " chunked ",
  "gzip, chunked",
  "chunked, gzip",
  "identity",
  "chunked,",
  "xchunked",
  "",
  "chunked;a=b",
);
const framing = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<string[]>(["content-length: 5"], ["transfer-encoding: chunked"], []) },
  {
    weight: 1,
    arbitrary: fc.array(
      fc
        .oneof(
          fc.tuple(fc.constantFrom("content-length", "Content-Length", "content-length "), length),
          fc.tuple(fc.constantFrom("transfer-encoding", "Transfer-Encoding"), coding),
        )
        .map(([name, value]) => `${name}: ${value}`),
      { maxLength: 3 },
    ),
  },
);

const fieldLine = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(text(TCHAR), text(/^[\t\x20-\x7e\x80-\xff]{0,20}$/)).map(([name, value]) => `${name}:${value}`),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "connection: close",
      "Connection: keep-alive",
      "connection: upgrade",
      "upgrade: websocket",
      "keep-alive: timeout=5",
      "proxy-connection: close",
      "trailer: x-a",
      "set-cookie: a=b",
      "set-cookie: c=d",
      "__proto__: x",
      "content-type: text/plain",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      " folded",
      "\tfolded",
      "no colon",
      ": no name",
      "space : before",
      "a: b\nc: d",
      "a: b\rc: d",
      "a: \0",
      "a\0: b",
      "",
      "a:",
      "a: \x7f",
      "a: \x01",
      "a(b): c",
      "ä: b",
      "a:   ",
      "a: b \t ",
    ),
  },
);

const chunkSize = (size: number): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(size.toString(16)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        `0${size.toString(16)}`,
        size.toString(16).toUpperCase(),
        `${size.toString(16)} `,
        `0x${size}`,
      ),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom((size + 1).toString(16), "", "-1", "ffffffffffffffff", "fffffffffffff", "g", " 5"),
    },
  );
const extension = fc.oneof(
  { weight: 6, arbitrary: fc.constant("") },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ";a",
      ";a=b",
      ';a="b c"',
      ';a="b\\"c"',
      ";",
      ";;",
      "; a=b",
      ";a =b",
      ";a= b",
      ';a="b',
      ";a=b;c=d",
      " ;a",
      ";a\0",
      ";a=\x01",
      ";=b",
      ";a=",
      ';a="\x7f"',
      ';a="\x80"',
      ";a=\x80",
      ';a="b"c',
      ';a="\\\x80"',
      ";a\nb",
      ";a\rb",
      ';a=b"c"',
      ';a=""',
    ),
  },
);
const lineEnd = fc.oneof(
  { weight: 20, arbitrary: fc.constant("\r\n") },
  { weight: 1, arbitrary: fc.constantFrom("\n", "\r", "\r\r\n", "") },
);

const chunk = text(/^[ -~]{1,20}$/).chain((data) =>
  fc.tuple(chunkSize(data.length), extension, lineEnd, fc.constant(data), lineEnd).map((parts) => parts.join("")),
);
const chunkedBody = fc
  .tuple(
    fc.array(chunk, { maxLength: 4 }),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant("0") },
      { weight: 1, arbitrary: fc.constantFrom("", "00", "0;a", "0 ", "-0") },
    ),
    lineEnd,
    fc.array(
      fc.tuple(fieldLine, lineEnd).map((parts) => parts.join("")),
      { maxLength: 2 },
    ),
    lineEnd,
  )
  .map(([chunks, last, end, trailers, final]) => `${chunks.join("")}${last}${end}${trailers.join("")}${final}`);
const body = fc.oneof(fc.constantFrom("", "hello", "hell", "hello!"), chunkedBody, chunkedBody);

const message = fc
  .tuple(
    fc.array(
      fc.constantFrom(
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
        "HTTP/1.1 100\n\n",
      ),
      {
        maxLength: 1,
        size: "xsmall",
      },
    ),
    statusLine,
    fc
      .tuple(framing, fc.array(fieldLine, { maxLength: 4 }))
      .chain(([frame, fields]) => fc.shuffledSubarray([...frame, ...fields], { minLength: frame.length })),
    fc.array(lineEnd, { minLength: 8, maxLength: 8 }),
    body,
    fc.constantFrom("", "", "", "x", "\r\n", "HTTP/1.1 200 OK\r\n\r\n"),
  )
  .map(([informational, status, fields, ends, content, behind]) => {
    const lines = [status, ...fields].map((line, index) => line + (ends[index] ?? "\r\n"));
    return Buffer.from(`${informational.join("")}${lines.join("")}${ends[7] ?? "\r\n"}${content}${behind}`, "latin1");
  });

const POINTED = [0, 1, 9, 10, 13, 32, 34, 44, 48, 49, 58, 59, 61, 92, 102, 127, 128, 255];

type Mutation = readonly [kind: "insert" | "remove" | "replace" | "repeat", at: number, byte: number, count: number];

const mutation: fc.Arbitrary<Mutation> = fc.tuple(
  fc.constantFrom("insert", "remove", "replace", "repeat"),
  fc.nat(400),
  fc.oneof(fc.constantFrom(...POINTED), fc.nat(255)),
  fc.integer({ min: 1, max: 40 }),
);

function mutated(bytes: Buffer, [kind, position, byte, count]: Mutation): Buffer {
  const at = bytes.length === 0 ? 0 : position % bytes.length;
  const inserted = {
    insert: Buffer.of(byte),
    replace: Buffer.of(byte),
    remove: Buffer.alloc(0),
    repeat: bytes.subarray(at, at + count),
  };
  const skipped = { insert: 0, replace: 1, remove: count, repeat: 0 };
  return Buffer.concat([bytes.subarray(0, at), inserted[kind], bytes.subarray(at + skipped[kind])]);
}

const mutations = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Mutation[]>([]) },
  { weight: 2, arbitrary: fc.array(mutation, { minLength: 1, maxLength: 3 }) },
);

export const generatedResponse: fc.Arbitrary<GeneratedResponse> = fc
  .record({
    whole: message,
    mutations,
    cuts: fc.array(fc.nat(400), { maxLength: 4 }),
    forHead: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 9),
  })
  .map(({ whole, mutations: all, cuts, forHead }) => ({ pieces: inPieces(all.reduce(mutated, whole), cuts), forHead }));

export function inPieces(whole: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
  return at
    .slice(1)
    .map((end, index) => whole.subarray(at[index], end))
    .filter((piece) => piece.length > 0);
}
