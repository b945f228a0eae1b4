/** What the doctor says of one thing, in one line. */
export interface Finding {
  readonly check: string;
  /** `warn`: the server works, and somebody should look. */
  readonly status: "ok" | "warn" | "fail" | "skipped";
  /** With what to do, where there is something. */
  readonly message: string;
}

export const ok = (check: string, message: string): Finding => ({ check, status: "ok", message });
export const warn = (check: string, message: string): Finding => ({ check, status: "warn", message });
export const fail = (check: string, message: string): Finding => ({ check, status: "fail", message });
export const skipped = (check: string, message: string): Finding => ({ check, status: "skipped", message });

/** A check that breaks is a finding too. */
export async function found(check: string, work: () => Finding | Promise<Finding>): Promise<Finding> {
  try {
    return await work();
  } catch (error) {
    return fail(check, error instanceof Error ? error.message : String(error));
  }
}
