/** Of this program; the same as the package's, which a test holds. */
export const DAEMON_VERSION = "0.1.0";
