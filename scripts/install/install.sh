#!/bin/sh
# Turns this machine into a node of the platform below: checks it, installs the Fairlead daemon as a systemd service and enrols it.
# You can run it again at any time to resume or repair an installation.
# Nothing runs before the last line, so a partial download does nothing.
set -eu

# Filled in by the platform host.
platform_url='@PLATFORM_URL@'
offered_version='@OFFERED_VERSION@'

root=/opt/fairlead-daemon
state=/var/lib/fairlead-daemon
runtime=/run/fairlead-daemon
config=/etc/fairlead
token_path=$config/bootstrap-token
unit=/etc/systemd/system/fairlead-daemon.service
link=/usr/local/bin/fairlead-daemon
made=$root/installed-files
socket=/var/run/docker.sock
proxy_names=https_proxy,HTTPS_PROXY,http_proxy,HTTP_PROXY,no_proxy,NO_PROXY

usage() {
  cat <<USAGE
Usage: curl -fsSL $platform_url/install.sh | FAIRLEAD_BOOTSTRAP_TOKEN=flb_… sh
       curl -fsSL $platform_url/install.sh | sh -s -- --token-file FILE [options]
Turns this machine into a node of $platform_url. Requires root, systemd and Docker; opens no ports.
Without a token, repairs an enrolled installation.

  --token-file FILE   bootstrap token from \`fairlead node bootstrap-token NODE\` (single use, valid for 30 minutes)
  --version V         version of the daemon to install (default: the one in the token)
  --yes               install Docker from the distribution, if missing, without asking
  --no-start          install without starting the daemon
  --dry-run           check this machine and print what would be done
  --ca-file FILE      PEM file with additional certificate authorities; copied to $config
  --insecure          allow plain HTTP to a platform on another machine; others on the network could take over the node
  --uninstall         remove the installation; with --containers also this node's containers, volumes and images
  --help              show this help
HTTPS_PROXY, HTTP_PROXY and NO_PROXY are used and saved for the daemon in $config/daemon.env.
The token is never passed as an argument. Exit codes: 0 success, 1 failure, 2 invalid command line.
USAGE
}

say() { printf '%s\n' "$@"; }
ok() { printf '  ok    %s\n' "$*"; }
note() { printf '  note  %s\n' "$*"; }
bad() {
  printf '  BAD   %s\n' "$*"
  problems=$((problems + 1))
}
fail() {
  printf '\ninstall.sh: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf '  %s\n' "$2" >&2
  exit 1
}
wrong_call() {
  printf 'install.sh: %s (--help lists the options)\n' "$1" >&2
  exit 2
}

read_arguments() {
  token_file='' ca_file='' version='' yes='''' start=yes dry='' insecure='' action=install containers=''
  while [ $# -gt 0 ]; do
    case $1 in
    --token-file | --version | --ca-file)
      [ -n "${2:-}" ] || wrong_call "$1 requires a value"
      case $1 in --version) version=$2 ;; --ca-file) ca_file=$2 ;; *) token_file=$2 ;; esac
      shift
      ;;
    --yes) yes=yes ;;
    --no-start) start='' ;;
    --dry-run) dry=yes ;;
    --insecure) insecure=yes ;;
    --uninstall) action=uninstall ;;
    --containers) containers=yes ;;
    --help | -h) usage && exit 0 ;;
    # Any local user can read arguments.
    flb_*) wrong_call "pass the token with --token-file or FAIRLEAD_BOOTSTRAP_TOKEN, not as an argument" ;;
    *) wrong_call "unknown option '$1'" ;;
    esac
    shift
  done
  case $version in *[!0-9A-Za-z.-]* | .* | -* | *..*) wrong_call "'$version' is not a valid version" ;; esac
  [ -z "$containers" ] || [ "$action" = uninstall ] || wrong_call "--containers requires --uninstall"
}

# The token is `flb_` followed by a base64url JSON object. It is only passed to builtins and pipes.
read_token() {
  token=${FAIRLEAD_BOOTSTRAP_TOKEN:-} token_json='' token_version=''
  unset FAIRLEAD_BOOTSTRAP_TOKEN
  if [ -n "$token_file" ]; then
    { [ -r "$token_file" ] && token=$(tr -d '[:space:]' <"$token_file") && [ -n "$token" ]; } ||
      fail "cannot read the file $token_file, or it is empty"
  fi
  [ -n "$token" ] || return 0
  token_json=$(decode_token) || true
  token_url=$(token_text url)
  # A truncated token may still contain the URL.
  case $token:$token_url:$token_json in
  flb_*:http*:*'}') ;;
  *) fail "the bootstrap token is invalid or incomplete" "A token starts with flb_; copy all of it." ;;
  esac
  [ "$token_url" = "$platform_url" ] || fail "the token is for $token_url, but this script is from $platform_url" \
    "Use a token and a script from the same platform."
  token_version=$(token_text version)
}

decode_token() {
  body=$(printf '%s' "${token#flb_}" | tr '_-' '/+')
  while [ $((${#body} % 4)) != 0 ]; do body=$body=; done
  printf '%s' "$body" | base64 -d 2>/dev/null
}
token_text() { printf '%s' "$token_json" | sed -n "s/.*\"$1\":\"\([^\"\\\\]*\)\".*/\1/p"; }

# URLs come from the platform's settings; redirects are not followed.
fetch() {
  path=$1
  shift
  [ -z "$ca_file" ] || set -- --cacert "$ca_file" "$@"
  curl --fail --silent --show-error --proto "=$scheme" --connect-timeout 15 "$@" "$platform_url$path"
}

# Proxies from the environment or an earlier run. Lower-case names take precedence, as in curl and the daemon.
read_proxies() {
  https_proxy=$(proxy_value "${https_proxy:-${HTTPS_PROXY:-}}" HTTPS_PROXY)
  http_proxy=$(proxy_value "${http_proxy:-${HTTP_PROXY:-}}" HTTP_PROXY)
  no_proxy=$(proxy_value "${no_proxy:-${NO_PROXY:-}}" NO_PROXY)
  case $https_proxy$http_proxy$no_proxy in
  *[![:graph:]\ ]*) fail "a proxy setting in the environment contains a control character" ;;
  esac
  kept_no_proxy=$no_proxy
  # Same as the daemon.
  no_proxy="localhost,127.0.0.1,127.0.0.0/8,::1,$no_proxy"
  export https_proxy http_proxy no_proxy
  unset HTTPS_PROXY HTTP_PROXY NO_PROXY ALL_PROXY all_proxy
  [ -z "$https_proxy$http_proxy" ] || note "proxy $(without_password "${https_proxy:-$http_proxy}"), also for the daemon"
}
proxy_value() {
  if [ -n "$1" ]; then printf '%s' "$1"; else sed -n "s/^$2=//p" "$config/daemon.env" 2>/dev/null | tail -n 1; fi
}
without_password() { printf '%s' "$1" | sed 's,//[^/]*@,//,; s,^[^/]*@,,'; }

read_ca_file() {
  [ -n "$ca_file" ] || [ ! -r "$config/ca.pem" ] || ca_file=$config/ca.pem
  [ -z "$ca_file" ] || grep -q 'BEGIN CERTIFICATE' "$ca_file" 2>/dev/null ||
    fail "cannot read the file $ca_file, or it contains no PEM certificate"
}

# keep_setting NAME VALUE: sets it in the daemon's environment file.
keep_setting() {
  grep -qxF "$1=$2" "$config/daemon.env" && return 0
  # Readable by root only, because it may contain a proxy password.
  (umask 077 && { grep -v "^$1=" "$config/daemon.env" || true; printf '%s=%s\n' "$1" "$2"; } >"$config/daemon.env.new")
  mv "$config/daemon.env.new" "$config/daemon.env"
}

check_transport() {
  scheme=${platform_url%%:*}
  [ "$scheme" = http ] || return 0
  case $platform_url in
  http://localhost | http://localhost[:/]* | http://127.* | 'http://[::1]'*) return 0 ;;
  esac
  [ -n "$insecure" ] || fail "$platform_url is plain HTTP to another machine" \
    "Set up HTTPS on the platform (docs/operations.md) or accept the risk with --insecure."
  note "plain HTTP: others on the network can read the node's credentials and tamper with the installation"
}

check_machine() {
  problems=0
  check_system
  check_disk
  check_platform
  check_docker
  [ "$problems" = 0 ] || fail "fix the $problems problem(s) above and run this again. Nothing was installed."
}

check_system() {
  name=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release 2>/dev/null || true)
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || true)
  if [ "$(uname -s)" != Linux ]; then
    bad "this is $(uname -s); the daemon requires Linux"
  elif [ -z "$libc" ]; then
    bad "${name:-this Linux} has no GNU C library, which the daemon's bundled Node requires"
  else
    ok "${name:-Linux}, $libc"
  fi
  case $(uname -m) in
  x86_64) arch=x64 && ok "processor x64" ;;
  aarch64 | arm64) arch=arm64 && note "processor arm64: builds are available but not tested" ;;
  *) bad "there is no build for $(uname -m) processors" ;;
  esac
  systemd=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  if [ ! -d /run/systemd/system ]; then
    bad "this machine does not use systemd, which the daemon requires"
  elif [ "${systemd:-0}" -lt 250 ]; then
    bad "systemd ${systemd:-(unknown version)} is too old: 250 or later is required"
  else
    ok "systemd $systemd"
  fi
}

free_megabytes() {
  folder=$1
  until [ -d "$folder" ]; do folder=$(dirname "$folder"); done
  df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1024) }'
}

check_disk() {
  free=$(free_megabytes "$root") free_docker=$(free_megabytes /var/lib/docker)
  if [ "$free" -lt 600 ]; then
    bad "$root has $free MB free, but 600 MB are required"
  elif [ "$free_docker" -lt 5120 ]; then
    note "Docker's disk has $free_docker MB free; engines and models often need more"
  else
    ok "disk: $free MB free for the program, $free_docker MB for Docker"
  fi
}

check_platform() {
  if ! headers=$(fetch /healthz --max-time 30 --dump-header - --output /dev/null 2>&1); then
    bad "cannot reach $platform_url: $(printf '%s' "$headers" | tail -n 1)"
    return 0
  fi
  date=$(printf '%s\n' "$headers" | tr -d '\r' | sed -n 's/^[Dd]ate: //p' | tail -n 1)
  skew=$(($(date +%s) - $(date -d "${date:-now}" +%s)))
  if [ "${skew#-}" -le 60 ]; then
    ok "$platform_url is reachable, clocks are in sync"
  else
    note "the clock differs from $platform_url by ${skew#-} s: enable time synchronization (timedatectl set-ntp true)"
  fi
}

docker_version() {
  curl --silent --max-time 10 --unix-socket "$socket" http://localhost/version 2>/dev/null |
    sed -n 's/.*"Version":"\([0-9][^"]*\)".*"ApiVersion".*/\1/p'
}

check_docker() {
  docker=$(docker_version)
  if [ -n "$docker" ]; then
    ok "Docker $docker"
    check_docker_proxy
  elif command -v dockerd >/dev/null; then
    bad "Docker is installed but does not respond at $socket: start it (systemctl enable --now docker)"
  elif ! command -v apt-get >/dev/null; then
    bad "Docker is not installed: install Docker Engine 20.10 or later"
  elif [ -n "$dry" ]; then
    note "Docker is not installed: the distribution's docker.io would be installed"
  elif [ "$problems" = 0 ] && agree "Docker is not installed. Install the distribution's docker.io?"; then
    install_docker
  else
    bad "Docker is not installed: run this with --yes to install docker.io, or install Docker Engine yourself"
  fi
}

# Docker does not see this environment when it pulls images.
check_docker_proxy() {
  [ -n "$https_proxy" ] || return 0
  curl --silent --max-time 10 --unix-socket "$socket" http://localhost/info 2>/dev/null |
    grep -q '"HttpsProxy":"[^"]' ||
    note "Docker has no proxy for pulling images: set one in /etc/docker/daemon.json and restart Docker"
}

# Under `curl | sh` stdin is the script, so the prompt uses the terminal.
agree() {
  [ -z "$yes" ] || return 0
  # In a subshell: a failed redirection of `:` exits the shell.
  (: >/dev/tty) 2>/dev/null || return 1
  printf '  %s [y/N] ' "$1" >/dev/tty
  read -r answer </dev/tty || return 1
  case $answer in [yY]*) return 0 ;; *) return 1 ;; esac
}

install_docker() {
  say "  …     installing docker.io"
  log=$(mktemp)
  if DEBIAN_FRONTEND=noninteractive apt-get -q update >"$log" 2>&1 </dev/null &&
    DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends docker.io iptables >>"$log" 2>&1 </dev/null &&
    systemctl enable --now docker >>"$log" 2>&1; then
    docker=$(docker_version)
  fi
  [ -n "$docker" ] || tail -n 15 "$log"
  rm -f "$log"
  [ -n "$docker" ] || fail "could not install or start docker.io; see above"
  ok "Docker $docker, newly installed; --uninstall keeps it"
}

# Chooses the build and its SHA-256, from the token if it names this version, else from the platform host.
choose_build() {
  installed=$(readlink "$root/current" 2>/dev/null || true)
  [ -n "$version" ] || version=${token_version:-${installed##*/}}
  [ -n "$version" ] || version=$offered_version
  [ -n "$version" ] || fail "this platform offers no daemon build" \
    "The operator must build one with scripts/build-daemon and put it in the folder builds.dir."
  target=$root/versions/$version
  file=fairlead-daemon-$version-linux-$arch.tar.gz
  sha256='' witness="the token"
  [ "$version" != "$token_version" ] || sha256=$(token_text "$arch")
  [ -n "$sha256" ] || [ "$version" != "${installed##*/}" ] || sha256=$(cat "$target/.sha256" 2>/dev/null || true)
  if [ -z "$sha256" ]; then
    witness="the platform host"
    sha256=$(fetch "/v1/daemon-builds/$file.sha256" --max-time 30 | sed -n 's/^\([0-9a-f]\{64\}\) .*/\1/p') || true
  fi
  [ ${#sha256} = 64 ] || fail "the platform offers no build $version for $arch" "Available builds: $platform_url/v1/daemon-builds"
}

install_build() {
  if [ "$(cat "$target/.sha256" 2>/dev/null)" = "$sha256" ] && "$target/bin/fairlead-daemon" --version >/dev/null 2>&1; then
    ok "build $version is already installed"
    return 0
  fi
  # Left over from an interrupted run.
  rm -rf "$root"/staging.*
  mkdir -p "$root/versions"
  staging=$(mktemp -d "$root/staging.XXXXXX")
  say "  …     downloading $file"
  fetch "/v1/daemon-builds/$file" --retry 5 --retry-delay 2 --speed-limit 1024 --speed-time 60 --max-time 3600 \
    --max-filesize 1000000000 --output "$staging/tar" ||
    fail "the download failed" "Run this again."
  actual=$(sha256sum "$staging/tar" | cut -c 1-64)
  if [ "$actual" != "$sha256" ]; then
    rm -rf "$staging"
    fail "$file does not match $witness: SHA-256 is $actual instead of $sha256" \
      "Nothing was installed. Get a new token and try again. If it happens again, someone may be tampering with your downloads."
  fi
  mkdir "$staging/build"
  tar -xzf "$staging/tar" -C "$staging/build" --no-same-owner
  told=$("$staging/build/bin/fairlead-daemon" --version 2>&1) || fail "the build does not run on this machine: $told"
  # Written last: a folder without it is incomplete.
  printf '%s\n' "$sha256" >"$staging/build/.sha256"
  [ ! -e "$target" ] || mv "$target" "$staging/old"
  mv "$staging/build" "$target"
  rm -rf "$staging"
  ok "build $told, verified against $witness"
}

# Records files outside of $root, for --uninstall.
remember() {
  mkdir -p "$root"
  grep -qxF "$1" "$made" 2>/dev/null || printf '%s\n' "$1" >>"$made"
}

place() { # place FILE MODE: atomically writes stdin to the file; true if it changed
  (umask 077 && cat >"$1.new")
  chmod "$2" "$1.new"
  if cmp -s "$1.new" "$1"; then rm "$1.new" && return 1; fi
  remember "$1"
  mv "$1.new" "$1"
}

install_service() {
  mkdir -p "$config"
  ln -sfn "versions/$version" "$root/current.new"
  mv -T "$root/current.new" "$root/current"
  if [ ! -e "$link" ] || [ -L "$link" ]; then remember "$link" && ln -sfn "$root/current/bin/fairlead-daemon" "$link"; fi
  [ -e "$config/daemon.env" ] ||
    echo "# Settings of the daemon, such as FAIRLEAD_DAEMON_LOG_LEVEL=debug; see fairlead-daemon run --help." | place "$config/daemon.env" 600
  [ -z "$insecure" ] || keep_setting FAIRLEAD_DAEMON_INSECURE true
  [ -z "$https_proxy" ] || keep_setting HTTPS_PROXY "$https_proxy"
  [ -z "$http_proxy" ] || keep_setting HTTP_PROXY "$http_proxy"
  [ -z "$kept_no_proxy" ] || [ -z "$https_proxy$http_proxy" ] || keep_setting NO_PROXY "$kept_no_proxy"
  if [ -n "$ca_file" ]; then
    [ "$ca_file" = "$config/ca.pem" ] || place "$config/ca.pem" 644 <"$ca_file" || true
    keep_setting FAIRLEAD_DAEMON_CA_FILE "$config/ca.pem"
  fi
  # Reloading systemd can detach GPUs from running containers, so it is done only if the unit changed.
  if place "$unit" 644 <"$target/systemd/fairlead-daemon.service"; then systemctl daemon-reload; fi
  if [ -n "$token" ]; then printf '%s\n' "$token" | place "$token_path" 600 || true; fi
  ok "service fairlead-daemon"
}

status_has() { "$root/current/bin/fairlead-daemon" status --json --state-dir "$state" 2>/dev/null | grep -q "$1"; }

# The daemon reports this to systemd.
is_connected() {
  case $(systemctl show fairlead-daemon --property=StatusText --value) in Connected*) return 0 ;; *) return 1 ;; esac
}

start_daemon() {
  if [ -z "$start" ]; then
    say "Not started. Start it with: systemctl enable --now fairlead-daemon. A bootstrap token is valid for 30 minutes."
    return 0
  fi
  [ -e "$token_path" ] || status_has '"enrolled":true' ||
    fail "this machine is not enrolled and there is no token" "Run this again with --token-file."
  say "  …     starting"
  systemctl enable --quiet fairlead-daemon
  systemctl reset-failed fairlead-daemon 2>/dev/null || true
  systemctl restart fairlead-daemon || explain_failure
  waited=0
  # Running with an identity is not enough: the platform may have revoked it.
  until systemctl is-active --quiet fairlead-daemon && is_connected; do
    if [ "$waited" -ge 60 ] || systemctl is-failed --quiet fairlead-daemon; then explain_failure; fi
    waited=$((waited + 1))
    sleep 1
  done
  # The token has been used.
  rm -f "$token_path"
  node=$("$root/current/bin/fairlead-daemon" status --state-dir "$state" | sed -n 's/^node *//p')
  ok "the daemon is running and connected to the platform"
  say "" "This machine is node $node. Its engine is starting; \`fairlead node get $node\` shows when the node is active." \
    "Daemon logs: journalctl -u fairlead-daemon -f"
}

explain_failure() {
  code=$(systemctl show fairlead-daemon --property=ExecMainStatus --value 2>/dev/null || true)
  say "" "Last log lines of the daemon:"
  journalctl -u fairlead-daemon -n 10 -o cat --no-pager 2>/dev/null | sed 's/^/  /' || true
  case $code in
  2 | 3) fail "the daemon cannot start" "See its log lines above: often the token is missing, already used or for another node." ;;
  5) fail "the platform rejects this node" "Get a new token (fairlead node bootstrap-token NODE) and run this again with it." ;;
  *) fail "the daemon has not reached the platform yet" \
    "It keeps trying while it runs (journalctl -u fairlead-daemon -f). Or run this again with a new token." ;;
  esac
}

uninstall() {
  if [ -n "$dry" ]; then
    say "Would be removed: $root $state $runtime"
    cat "$made" 2>/dev/null || true
    exit 0
  fi
  systemctl disable --now --quiet fairlead-daemon 2>/dev/null || true
  if [ -n "$containers" ] && [ -e "$state/identity.json" ]; then
    "$root/current/bin/fairlead-daemon" purge --state-dir "$state" ||
      fail "could not remove all containers, volumes and images" "Nothing else was removed; run this again."
  fi
  # The list is removed last, so that an interrupted uninstall can be repeated.
  while read -r path; do rm -f "$path" "$path.new"; done 2>/dev/null <"$made" || true
  systemctl daemon-reload
  systemctl reset-failed fairlead-daemon 2>/dev/null || true
  rm -rf "$state" "$runtime" "$root"
  # A control plane on this machine may have its settings there.
  rmdir "$config" 2>/dev/null || true
  say "Removed. Docker and its settings were not changed."
  [ -n "$containers" ] || say "Containers of this node keep running: docker ps --filter label=dev.fairlead.node"
}

main() {
  read_arguments "$@"
  [ "$(id -u)" = 0 ] || fail "this must run as root" \
    "curl -fsSL $platform_url/install.sh | sudo --preserve-env=FAIRLEAD_BOOTSTRAP_TOKEN,$proxy_names sh"
  if [ "$action" = uninstall ]; then uninstall && exit 0; fi
  command -v curl >/dev/null || fail "curl is missing" "apt-get install curl"
  read_token
  check_transport
  say "Fairlead node daemon, platform $platform_url"
  read_proxies
  read_ca_file
  check_machine
  choose_build
  if [ -n "$dry" ]; then
    say "" "Dry run: build $version for $arch would be installed in $root with the service fairlead-daemon."
    exit 0
  fi
  umask 022
  install_build
  install_service
  start_daemon
}

main "$@"
