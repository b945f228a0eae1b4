/** What a rented machine runs at its first start: the platform's own installer, with a bootstrap token that is spent by it. Pure. */

export interface UserDataParts {
  readonly publicUrl: string;
  readonly bootstrapToken: string;
  /** Plain http to another machine is accepted. */
  readonly insecure: boolean;
}

/** A plain script, which every cloud-init takes. The token is in no command's arguments, and void once the daemon has enrolled. */
export function renderUserData({ publicUrl, bootstrapToken, insecure }: UserDataParts): string {
  const scheme = publicUrl.startsWith("https:") ? "https" : "http";
  return `#!/bin/sh
# Makes this machine a node of ${publicUrl.replaceAll(/[^\x21-\x7e]/g, "")}.
set -u
umask 077
export DEBIAN_FRONTEND=noninteractive
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/token" <<'TOKEN'
${bootstrapToken}
TOKEN
attempt=0
until
  { command -v curl >/dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends curl ca-certificates; }; } &&
    curl --fail --silent --show-error --proto =${scheme} --output "$folder/install.sh" ${quoted(`${publicUrl}/install.sh`)} &&
    sh "$folder/install.sh" --yes${insecure ? " --insecure" : ""} --token-file "$folder/token"
do
  # The network comes up late, a mirror is unavailable, another program holds the package lock.
  attempt=$((attempt + 1))
  [ "$attempt" -lt 30 ] || exit 1
  sleep 10
done
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
