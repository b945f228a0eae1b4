#!/bin/sh
# Installs the control plane as a systemd service from the unpacked build that contains this script. Run it again to repair, or from a
# newer build to upgrade. See docs/install.md.
set -eu

root=/opt/fairlead
state=/var/lib/fairlead
config=/etc/fairlead
unit=/etc/systemd/system/fairlead-control-plane.service
link=/usr/local/bin/fairlead
service=fairlead-control-plane

usage() {
  cat <<USAGE
Usage: scripts/install/install-control-plane.sh [options]     (as root, in an unpacked build of the control plane)

Installs the program in $root, the service $service and the user fairlead. Settings are in $config/config.yaml.

  --public-url URL    external URL of the platform host; used for a new $config/config.yaml
  --models-url URL    external URL of the inference host; used for a new $config/config.yaml
  --no-start          install without starting
  --dry-run           check this machine and print what would be done
  --uninstall         remove the program and the service; with --data also the store, the master key and the settings
  --help              show this help
USAGE
}

say() { printf '%s\n' "$@"; }
ok() { printf '  ok    %s\n' "$*"; }
fail() {
  printf '\ninstall-control-plane.sh: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf '  %s\n' "$2" >&2
  exit 1
}
wrong_call() {
  printf 'install-control-plane.sh: %s (--help lists the options)\n' "$1" >&2
  exit 2
}

read_arguments() {
  public_url='' models_url='' start=yes dry='' action=install data=''
  while [ $# -gt 0 ]; do
    case $1 in
    --public-url | --models-url)
      case ${2:-} in
      *[!0-9A-Za-z:/._~-]* | */) wrong_call "$1 requires a URL such as https://fairlead.example.com" ;;
      https://?* | http://?*) ;;
      *) wrong_call "$1 requires a URL such as https://fairlead.example.com" ;;
      esac
      if [ "$1" = --public-url ]; then public_url=$2; else models_url=$2; fi
      shift
      ;;
    --no-start) start='' ;;
    --dry-run) dry=yes ;;
    --uninstall) action=uninstall ;;
    --data) data=yes ;;
    --help | -h) usage && exit 0 ;;
    *) wrong_call "unknown option '$1'" ;;
    esac
    shift
  done
  [ -z "$data" ] || [ "$action" = uninstall ] || wrong_call "--data requires --uninstall"
}

check_machine() {
  [ -x "$build/bin/fairlead" ] ||
    fail "this script is not in an unpacked build" "Create one with scripts/build-control-plane, unpack it and run the script in it."
  version=$(sed -n 's/^  "version": "\([0-9A-Za-z.-]*\)".*/\1/p' "$build/build.json")
  told=$("$build/bin/fairlead" --version 2>&1) || fail "this build does not run on this machine: $told"
  ok "build $told"
  systemd=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  [ -d /run/systemd/system ] || fail "this machine does not use systemd"
  [ "${systemd:-0}" -ge 250 ] || fail "systemd ${systemd:-(unknown version)} is too old: 250 or later is required"
  ok "systemd $systemd"
  free=$(df -Pk /opt | awk 'NR == 2 { print int($4 / 1024) }')
  [ "$free" -ge 600 ] || fail "/opt has $free MB free, but 600 MB are required"
  ok "disk: $free MB free"
}

install_program() {
  target=$root/versions/$version
  if [ "$build" != "$target" ]; then
    mkdir -p "$root/versions"
    rm -rf "$root"/staging.*
    staging=$(mktemp -d "$root/staging.XXXXXX")
    cp -a "$build" "$staging/build"
    chown -R root:root "$staging/build"
    chmod 755 "$staging/build"
    [ ! -e "$target" ] || mv "$target" "$staging/old"
    mv "$staging/build" "$target"
    rm -rf "$staging"
  fi
  ln -sfn "versions/$version" "$root/current.new"
  mv -T "$root/current.new" "$root/current"
  if [ ! -e "$link" ] || [ -L "$link" ]; then ln -sfn "$root/current/bin/fairlead" "$link"; fi
  ok "program in $target"
}

install_service() {
  getent passwd fairlead >/dev/null ||
    useradd --system --user-group --home-dir "$state" --no-create-home --shell /usr/sbin/nologin fairlead
  mkdir -p "$config"
  [ -e "$config/config.yaml" ] || write_settings
  if ! cmp -s "$root/current/systemd/$service.service" "$unit"; then
    cp "$root/current/systemd/$service.service" "$unit.new"
    mv "$unit.new" "$unit"
    systemctl daemon-reload
  fi
  ok "service $service, user fairlead, settings in $config/config.yaml"
}

write_settings() {
  {
    say "# Settings of the control plane. All settings and their defaults: $root/current/docs/config.md" \
      "dataDir: $state" "server:"
    if [ -n "$public_url" ]; then say "  publicUrl: $public_url"; else say "  # publicUrl: https://fairlead.example.com"; fi
    if [ -n "$models_url" ]; then say "  modelsUrl: $models_url"; else say "  # modelsUrl: https://models.example.com"; fi
    say "  # For use behind a reverse proxy on this machine that handles TLS ($root/current/docs/operations.md)." \
      "  platform: { host: 127.0.0.1, port: 8080 }" "  inference: { host: 127.0.0.1, port: 8081 }" \
      "  # trustedProxies: [127.0.0.1]"
  } >"$config/config.yaml.new"
  chown root:fairlead "$config/config.yaml.new"
  # It may contain secrets, such as the store's password.
  chmod 640 "$config/config.yaml.new"
  mv "$config/config.yaml.new" "$config/config.yaml"
}

start_server() {
  if [ -z "$start" ]; then
    say "Not started. Start it with: systemctl enable --now $service"
    return 0
  fi
  say "  …     starting (a new version may migrate its store first)"
  systemctl enable --quiet "$service"
  systemctl reset-failed "$service" 2>/dev/null || true
  # Returns when the server is listening, which it reports to systemd.
  if ! systemctl restart "$service"; then
    journalctl -u "$service" -n 10 -o cat --no-pager 2>/dev/null | sed 's/^/  /' || true
    fail "the control plane failed to start; see its last log lines above" "Fix $config/config.yaml and run this again."
  fi
  ok "the control plane is running"
  journalctl --sync 2>/dev/null || true
  run=$(systemctl show "$service" --property=InvocationID --value)
  journalctl _SYSTEMD_INVOCATION_ID="$run" -o cat --no-pager 2>/dev/null | grep -m 1 '^create the first administrator account' || true
  say "" "Logs: journalctl -u $service -f"
}

uninstall() {
  if [ -n "$dry" ]; then
    say "Would be removed: $unit $link $root${data:+ $state $config/config.yaml $config/control-plane.env, the user fairlead}"
    return 0
  fi
  systemctl disable --now --quiet "$service" 2>/dev/null || true
  rm -f "$unit"
  systemctl daemon-reload
  systemctl reset-failed "$service" 2>/dev/null || true
  [ ! -L "$link" ] || rm -f "$link"
  rm -rf "$root"
  if [ -n "$data" ]; then
    rm -rf "$state"
    rm -f "$config/config.yaml" "$config/control-plane.env"
    ! getent passwd fairlead >/dev/null || userdel fairlead
  fi
  # A node daemon on this machine may have its settings there.
  rmdir "$config" 2>/dev/null || true
  say "Removed."
  [ -n "$data" ] || say "The store and the master key remain in $state, the settings in $config."
}

main() {
  build=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
  read_arguments "$@"
  [ "$(id -u)" = 0 ] || fail "this must run as root"
  umask 022
  if [ "$action" = uninstall ]; then uninstall && exit 0; fi
  say "Fairlead control plane"
  check_machine
  if [ -n "$dry" ]; then
    say "" "Dry run: build $version would be installed in $root with the service $service."
    exit 0
  fi
  install_program
  install_service
  start_server
}

main "$@"
