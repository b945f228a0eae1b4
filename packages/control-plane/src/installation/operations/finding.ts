/** The doctor's result for one check, in one line. */
export interface DoctorFinding {
  readonly check: string;
  /** `warn`: the server works, but needs attention. */
  readonly status: "ok" | "warn" | "fail" | "skipped";
  /** Includes what to do, if anything. */
  readonly message: string;
}

export const ok = (check: string, message: string): DoctorFinding => ({ check, status: "ok", message });
export const warn = (check: string, message: string): DoctorFinding => ({ check, status: "warn", message });
export const fail = (check: string, message: string): DoctorFinding => ({ check, status: "fail", message });
export const skipped = (check: string, message: string): DoctorFinding => ({ check, status: "skipped", message });

/** A check that throws is a finding too. */
export async function found(check: string, work: () => DoctorFinding | Promise<DoctorFinding>): Promise<DoctorFinding> {
  try {
    return await work();
  } catch (error) {
    return fail(check, error instanceof Error ? error.message : String(error));
  }
}
