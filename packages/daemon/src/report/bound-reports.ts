import { cutText } from "@fairlead/protocol/values/text";
import { REPORT_LIMITS, type WorkloadReport } from "@fairlead/protocol/workload";

/** Truncates reports to the control plane's limits: texts from engines, images and Docker can be long. Pure. */

/** Limit for all reports together; half of a link message. */
const MAX_BYTES = 512 * 1024;

interface Room {
  readonly message: number;
  readonly models: number;
}

/** Fixed fields are kept; the rest is cut equally to fit. */
const ROOMS: readonly Room[] = [
  { message: REPORT_LIMITS.message, models: REPORT_LIMITS.models },
  { message: 200, models: 16 },
  { message: 0, models: 0 },
];

export function boundReports(reports: readonly WorkloadReport[]): WorkloadReport[] {
  let bounded: WorkloadReport[] = [];
  for (const room of ROOMS) {
    // Never drop a report: an agent without one counts as gone and may start elsewhere.
    bounded = reports.map((report) => boundReport(report, room));
    if (Buffer.byteLength(JSON.stringify(bounded)) <= MAX_BYTES) break;
  }
  return bounded;
}

function boundReport(report: WorkloadReport, room: Room): WorkloadReport {
  const { version, image, imageDigest, startedAt, lastExit } = report;
  const { time } = REPORT_LIMITS;
  return {
    ...report,
    version: cutText(version, REPORT_LIMITS.version),
    image: cutText(image, REPORT_LIMITS.image),
    imageDigest: cutText(imageDigest, REPORT_LIMITS.digest),
    // A truncated name would be another model.
    models: report.models.filter((model) => model.length <= REPORT_LIMITS.model).slice(0, room.models),
    startedAt: startedAt === null ? null : cutText(startedAt, time),
    lastExit: lastExit && {
      ...lastExit,
      reason: cutText(lastExit.reason, room.message),
      at: cutText(lastExit.at, time),
    },
    message: cutText(report.message, room.message),
  };
}
