import { call, type Outcome } from "./call.ts";

const PAGE_MS = 4000;
const POST_MS = 5000;

interface PageForm {
  post(path: string, fields: Readonly<Record<string, string>>): Promise<Outcome>;
}

/** The sign-in page's form, with its token and cookie. @returns null where the page does not come. */
export async function openForm(url: string, localAddress: string): Promise<PageForm | null> {
  const page = await fetch(`${url}/sign-in`, { signal: AbortSignal.timeout(PAGE_MS) }).catch(() => null);
  const text = (await page?.text().catch(() => "")) ?? "";
  if (page === null || text === "") return null;
  const cookie = page.headers.getSetCookie().map((each) => each.split(";", 1)[0]);
  const hidden = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
  const values = [...hidden].map(([, name = "", value = ""]): [string, string] => [name, value]);
  const type = "application/x-www-form-urlencoded";
  const headers = { cookie: cookie.join("; "), "content-type": type, origin: url };
  return {
    post: (path, fields) => {
      const body = new URLSearchParams([...values, ...Object.entries(fields)]).toString();
      return call({ url, path, method: "POST", headers, body, localAddress, deadlineMs: POST_MS });
    },
  };
}
