#!/bin/sh
# Makes this machine a node of the platform below: checks it, installs the Fairlead daemon as a systemd service, enrols it.
# Run it again at any time: it goes on where it was interrupted, and repairs what is missing.
# Nothing runs before the last line, so that a download that breaks off does nothing.
set -eu

# Filled in by the platform host from its own settings.
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

usage() {
  cat <<USAGE
Usage: curl -fsSL $platform_url/install.sh | FAIRLEAD_BOOTSTRAP_TOKEN=flb_… sh
       curl -fsSL $platform_url/install.sh | sh -s -- --token-file FILE [options]
Makes this machine a node of $platform_url. Needs root, systemd and Docker, and opens no port.
Without a token it repairs an installation that is enrolled already.

  --token-file FILE   the bootstrap token (\`fairlead node bootstrap-token NODE\` makes one: one use, 30 minutes)
  --version V         a certain build of the daemon; default: the one that the token names
  --yes               install Docker from the distribution without asking, where there is none
  --no-start          install everything, but do not start the daemon
  --dry-run           only check this machine, and say what would be done
  --insecure          accept plain http to a platform on another machine: whoever is on the way can take the node over
  --uninstall         remove all that this script made; with --containers this node's containers, volumes and images too
  --help              this text
The token never stands in a command's arguments. Exit codes: 0 done, 1 something is wrong, 2 wrong call.
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
  token_file='' version='' yes='' start=yes dry='' insecure='' action=install containers=''
  while [ $# -gt 0 ]; do
    case $1 in
    --token-file | --version)
      [ -n "${2:-}" ] || wrong_call "$1 needs a value"
      if [ "$1" = --version ]; then version=$2; else token_file=$2; fi
      shift
      ;;
    --yes) yes=yes ;;
    --no-start) start='' ;;
    --dry-run) dry=yes ;;
    --insecure) insecure=yes ;;
    --uninstall) action=uninstall ;;
    --containers) containers=yes ;;
    --help | -h) usage && exit 0 ;;
    # A token in an argument can be read by everybody on the machine.
    flb_*) wrong_call "give the token by --token-file or FAIRLEAD_BOOTSTRAP_TOKEN, not as an argument" ;;
    *) wrong_call "unknown option '$1'" ;;
    esac
    shift
  done
  case $version in *[!0-9A-Za-z.-]* | .* | -* | *..*) wrong_call "'$version' is no version" ;; esac
  [ -z "$containers" ] || [ "$action" = uninstall ] || wrong_call "--containers goes with --uninstall"
}

# The token: `flb_` and a JSON object in base64url. Only builtins and pipes see it.
read_token() {
  token=${FAIRLEAD_BOOTSTRAP_TOKEN:-} token_json='' token_version=''
  unset FAIRLEAD_BOOTSTRAP_TOKEN
  if [ -n "$token_file" ]; then
    { [ -r "$token_file" ] && token=$(tr -d '[:space:]' <"$token_file") && [ -n "$token" ]; } ||
      fail "the file $token_file cannot be read, or is empty"
  fi
  [ -n "$token" ] || return 0
  token_json=$(decode_token) || true
  token_url=$(token_text url)
  # What was cut off may name the platform all the same.
  case $token:$token_url:$token_json in
  flb_*:http*:*'}') ;;
  *) fail "that is not a bootstrap token, or not all of it" "A token begins with flb_; copy it whole." ;;
  esac
  [ "$token_url" = "$platform_url" ] || fail "the token is of $token_url, this script of $platform_url" \
    "Take both from the same platform."
  token_version=$(token_text version)
}

decode_token() {
  body=$(printf '%s' "${token#flb_}" | tr '_-' '/+')
  while [ $((${#body} % 4)) != 0 ]; do body=$body=; done
  printf '%s' "$body" | base64 -d 2>/dev/null
}
token_text() { printf '%s' "$token_json" | sed -n "s/.*\"$1\":\"\([^\"\\\\]*\)\".*/\1/p"; }

# Addresses come from the platform's settings; no redirect leads elsewhere.
fetch() {
  path=$1
  shift
  curl --fail --silent --show-error --proto "=$scheme" --connect-timeout 15 "$@" "$platform_url$path"
}

check_transport() {
  scheme=${platform_url%%:*}
  [ "$scheme" = http ] || return 0
  case $platform_url in
  http://localhost | http://localhost:* | http://127.* | 'http://[::1]'*) return 0 ;;
  esac
  [ -n "$insecure" ] || fail "$platform_url is plain http to another machine" \
    "Give the platform https (docs/operations.md), or accept the risk with --insecure."
  note "plain http: whoever is on the way can read the node's credentials and change what is installed"
}

check_machine() {
  problems=0
  check_system
  check_disk
  check_platform
  check_docker
  [ "$problems" = 0 ] || fail "$problems of these must be put right first; then run this again. Nothing was installed."
}

check_system() {
  name=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release 2>/dev/null || true)
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || true)
  if [ "$(uname -s)" != Linux ]; then
    bad "this is $(uname -s); the daemon is for Linux"
  elif [ -z "$libc" ]; then
    bad "${name:-this Linux} has no GNU C library, which the daemon's own Node needs"
  else
    ok "${name:-Linux}, $libc"
  fi
  case $(uname -m) in
  x86_64) arch=x64 && ok "processor x64" ;;
  aarch64 | arm64) arch=arm64 && note "processor arm64: builds for it are made, but not tested" ;;
  *) bad "there is no build for processors of the kind $(uname -m)" ;;
  esac
  systemd=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  if [ ! -d /run/systemd/system ]; then
    bad "systemd does not run this machine, and the daemon is one of its services"
  elif [ "${systemd:-0}" -lt 250 ]; then
    bad "systemd ${systemd:-of an unknown version} is too old: 250 or later is needed"
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
    bad "$root has $free MB of disk left, and 600 MB are needed"
  elif [ "$free_docker" -lt 5120 ]; then
    note "Docker's disk has $free_docker MB left; engines and their models often take more"
  else
    ok "disk: $free MB left for the program, $free_docker MB for Docker"
  fi
}

check_platform() {
  if ! headers=$(fetch /healthz --max-time 30 --dump-header - --output /dev/null 2>&1); then
    bad "$platform_url does not answer: $(printf '%s' "$headers" | tail -n 1)"
    return 0
  fi
  date=$(printf '%s\n' "$headers" | tr -d '\r' | sed -n 's/^[Dd]ate: //p' | tail -n 1)
  skew=$(($(date +%s) - $(date -d "${date:-now}" +%s)))
  if [ "${skew#-}" -le 60 ]; then
    ok "$platform_url answers, and the clocks agree"
  else
    note "the clock is ${skew#-} s off that of $platform_url: turn time synchronisation on (timedatectl set-ntp true)"
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
  elif command -v dockerd >/dev/null; then
    bad "Docker is installed but does not answer at $socket: start it (systemctl enable --now docker)"
  elif ! command -v apt-get >/dev/null; then
    bad "there is no Docker here: install a Docker engine, 20.10 or later"
  elif [ -n "$dry" ]; then
    note "there is no Docker here: docker.io of the distribution would be installed"
  elif [ "$problems" = 0 ] && agree "There is no Docker here. Install docker.io of the distribution?"; then
    install_docker
  else
    bad "there is no Docker here: run this with --yes to install docker.io, or install a Docker engine yourself"
  fi
}

# Under `curl | sh` the script itself is the standard input, so a person is asked through the terminal.
agree() {
  [ -z "$yes" ] || return 0
  # In a shell of its own: a redirection of `:` that fails ends the shell.
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
  [ -n "$docker" ] || fail "docker.io could not be installed, or does not start; see above"
  ok "Docker $docker, installed just now; --uninstall leaves it"
}

# Which build, and the SHA-256 that it must have: the token's word where it names this version, else the platform host's.
choose_build() {
  installed=$(readlink "$root/current" 2>/dev/null || true)
  [ -n "$version" ] || version=${token_version:-${installed##*/}}
  [ -n "$version" ] || version=$offered_version
  [ -n "$version" ] || fail "this platform offers no build of the daemon" \
    "Its operator makes one with scripts/build-daemon and puts it into the folder builds.dir."
  target=$root/versions/$version
  file=fairlead-daemon-$version-linux-$arch.tar.gz
  sha256='' witness="the token"
  [ "$version" != "$token_version" ] || sha256=$(token_text "$arch")
  [ -n "$sha256" ] || [ "$version" != "${installed##*/}" ] || sha256=$(cat "$target/.sha256" 2>/dev/null || true)
  if [ -z "$sha256" ]; then
    witness="the platform host"
    sha256=$(fetch "/v1/daemon-builds/$file.sha256" --max-time 30 | sed -n 's/^\([0-9a-f]\{64\}\) .*/\1/p') || true
  fi
  [ ${#sha256} = 64 ] || fail "the platform offers no build $version for $arch" "Those that there are: $platform_url/v1/daemon-builds"
}

install_build() {
  if [ "$(cat "$target/.sha256" 2>/dev/null)" = "$sha256" ] && "$target/bin/fairlead-daemon" --version >/dev/null 2>&1; then
    ok "build $version is there"
    return 0
  fi
  # What an interrupted run left.
  rm -rf "$root"/staging.*
  mkdir -p "$root/versions"
  staging=$(mktemp -d "$root/staging.XXXXXX")
  say "  …     downloading $file"
  fetch "/v1/daemon-builds/$file" --retry 5 --retry-delay 2 --speed-limit 1 --speed-time 60 --output "$staging/tar" ||
    fail "the download broke off" "Run this again."
  actual=$(sha256sum "$staging/tar" | cut -c 1-64)
  if [ "$actual" != "$sha256" ]; then
    rm -rf "$staging"
    fail "$file is not what $witness says: SHA-256 $actual instead of $sha256" \
      "Nothing was installed. Get a fresh token; if it happens again, somebody changes what you download."
  fi
  mkdir "$staging/build"
  tar -xzf "$staging/tar" -C "$staging/build" --no-same-owner
  told=$("$staging/build/bin/fairlead-daemon" --version 2>&1) || fail "the build does not run on this machine: $told"
  # Written last, so that a folder without it is not whole.
  printf '%s\n' "$sha256" >"$staging/build/.sha256"
  [ ! -e "$target" ] || mv "$target" "$staging/old"
  mv "$staging/build" "$target"
  rm -rf "$staging"
  ok "build $told, as $witness names it"
}

# Every file that this script makes outside of $root, for --uninstall.
remember() {
  mkdir -p "$root"
  grep -qxF "$1" "$made" 2>/dev/null || printf '%s\n' "$1" >>"$made"
}

place() { # place FILE MODE: standard input becomes the file, whole or not at all; true where that changed it
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
    echo "# Settings of the daemon, such as FAIRLEAD_DAEMON_LOG_LEVEL=debug: see fairlead-daemon run --help." | place "$config/daemon.env" 600
  if [ -n "$insecure" ] && ! grep -qxF FAIRLEAD_DAEMON_INSECURE=true "$config/daemon.env"; then
    echo FAIRLEAD_DAEMON_INSECURE=true >>"$config/daemon.env"
  fi
  # Reloading systemd can take the GPUs away from containers that run, so it is done only where the unit changed.
  if place "$unit" 644 <"$target/systemd/fairlead-daemon.service"; then systemctl daemon-reload; fi
  if [ -n "$token" ]; then printf '%s\n' "$token" | place "$token_path" 600 || true; fi
  ok "service fairlead-daemon"
}

status_has() { "$root/current/bin/fairlead-daemon" status --json --state-dir "$state" 2>/dev/null | grep -q "$1"; }

# What the daemon tells systemd of itself.
is_connected() {
  case $(systemctl show fairlead-daemon --property=StatusText --value) in Connected*) return 0 ;; *) return 1 ;; esac
}

start_daemon() {
  if [ -z "$start" ]; then
    say "Not started: \`systemctl enable --now fairlead-daemon\` does that. A bootstrap token is good for 30 minutes."
    return 0
  fi
  [ -e "$token_path" ] || status_has '"enrolled":true' ||
    fail "this machine is not enrolled, and there is no token" "Run this again with --token-file."
  say "  …     starting"
  systemctl enable --quiet fairlead-daemon
  systemctl reset-failed fairlead-daemon 2>/dev/null || true
  systemctl restart fairlead-daemon || explain_failure
  waited=0
  # That it runs and has an identity is not enough: the platform may have disowned it.
  until systemctl is-active --quiet fairlead-daemon && is_connected; do
    if [ "$waited" -ge 60 ] || systemctl is-failed --quiet fairlead-daemon; then explain_failure; fi
    waited=$((waited + 1))
    sleep 1
  done
  # It is spent.
  rm -f "$token_path"
  node=$("$root/current/bin/fairlead-daemon" status --state-dir "$state" | sed -n 's/^node *//p')
  ok "the daemon runs, and is connected to the platform"
  say "" "This machine is node $node. Its engine is being started; \`fairlead node get $node\` shows when it is active." \
    "The daemon's log: journalctl -u fairlead-daemon -f"
}

explain_failure() {
  code=$(systemctl show fairlead-daemon --property=ExecMainStatus --value 2>/dev/null || true)
  say "" "The last words of the daemon:"
  journalctl -u fairlead-daemon -n 10 -o cat --no-pager 2>/dev/null | sed 's/^/  /' || true
  case $code in
  2 | 3) fail "the daemon cannot start" "Read its words above: often the token is missing, spent or of another node." ;;
  5) fail "the platform refuses this node" "Get a fresh token (fairlead node bootstrap-token NODE) and run this again with it." ;;
  *) fail "the daemon has not reached the platform yet" \
    "While it runs it goes on trying (journalctl -u fairlead-daemon -f). Or run this again with a fresh token." ;;
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
      fail "not all containers, volumes and images could be removed" "Nothing else was removed; run this again."
  fi
  # The list goes last: what was interrupted can be run again.
  while read -r path; do rm -f "$path" "$path.new"; done 2>/dev/null <"$made" || true
  systemctl daemon-reload
  systemctl reset-failed fairlead-daemon 2>/dev/null || true
  rm -rf "$state" "$runtime" "$root"
  # The control plane may keep its settings there.
  rmdir "$config" 2>/dev/null || true
  say "Removed. Docker and its own settings were left as they are."
  [ -n "$containers" ] || say "Containers of this node go on running: docker ps --filter label=dev.fairlead.node"
}

main() {
  read_arguments "$@"
  [ "$(id -u)" = 0 ] || fail "this needs root" \
    "curl -fsSL $platform_url/install.sh | sudo --preserve-env=FAIRLEAD_BOOTSTRAP_TOKEN sh"
  if [ "$action" = uninstall ]; then uninstall && exit 0; fi
  command -v curl >/dev/null || fail "curl is missing" "apt-get install curl"
  read_token
  check_transport
  say "Fairlead node daemon, platform $platform_url"
  check_machine
  choose_build
  if [ -n "$dry" ]; then
    say "" "A dry run: build $version for $arch would be installed into $root, with the service fairlead-daemon."
    exit 0
  fi
  umask 022
  install_build
  install_service
  start_daemon
}

main "$@"
