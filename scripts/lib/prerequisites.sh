# Installs what Fairlead needs on a Debian machine. Sourced by scripts/quickstart and scripts/test from the
# root of the checkout. Functions do nothing if nothing is missing. Errors say what to do.

# step TEXT COMMAND…: prints a progress line. The command's output is shown only if it fails.
# Output to file descriptor 8 is shown immediately.
step() {
  local title=$1 log started=$SECONDS ticker code=0
  shift
  log=$(mktemp)
  printf '  %-44s' "$title"
  show_progress "$title" "$log" &
  ticker=$!
  if "$@" 8>&1 >"$log" 2>&1; then code=0; else code=1; fi
  kill "$ticker" 2>/dev/null
  wait "$ticker" 2>/dev/null || true
  if [ -t 1 ]; then
    printf '\r\033[K  %-44s' "$title"
  elif [ $((SECONDS - started)) -ge "$progress_seconds" ]; then
    printf '\n  %-44s' "$title"
  fi
  if [ "$code" = 0 ]; then
    printf 'ok %4ds\n' $((SECONDS - started))
    rm -f "$log"
    return 0
  fi
  printf 'failed\n\n'
  tail -n 25 "$log" >&2
  rm -f "$log"
  explain_full_disk
  return 1
}

# Interval for showing the last output line of a long step without a terminal.
progress_seconds=15

# show_progress TITLE LOG: runs until killed.
show_progress() {
  local title=$1 log=$2 started=$SECONDS every=$progress_seconds never last
  [ ! -t 1 ] || every=1
  # Waits without a child process, which could outlive this one and keep our output open.
  exec {never}<> <(:)
  while ! read -r -t "$every" -u "$never"; do
    last=$(tail -n 1 "$log" | tr -dc '[:print:]' | cut -c 1-60)
    last=${last:-still working}
    if [ -t 1 ]; then
      printf '\r\033[K  %-44s%4ds  %s' "$title" $((SECONDS - started)) "$last"
    else
      printf '\n    %4ds  %s' $((SECONDS - started)) "$last"
    fi
  done
}

# wait_for_lock FILE WHAT: holds the lock on file descriptor 7 until it is closed or the process ends.
wait_for_lock() {
  exec 7<"$1"
  flock -n 7 && return 0
  echo "  waiting for another quickstart $2"
  flock 7
}

fail() {
  printf '\n%s\n' "$@" >&2
  exit 1
}

free_megabytes() { df --output=avail -BM "$1" | tail -n 1 | tr -dc '0-9'; }

explain_full_disk() {
  local folder
  for folder in . /tmp /var/lib; do
    [ "$(free_megabytes "$folder")" -ge 50 ] ||
      printf '\nThe disk of %s is full (%s MB free). Free some space and run this again.\n' \
        "$(realpath "$folder")" "$(free_megabytes "$folder")" >&2
  done
}

require_space() {
  local folder=$1 megabytes=$2
  [ "$(free_megabytes "$folder")" -ge "$megabytes" ] ||
    fail "The disk of $folder has $(free_megabytes "$folder") MB free, but $megabytes MB are required. Free some space and run this again."
}

# node_major prints nothing without Node.
node_major() { node -p 'parseInt(process.versions.node)' 2>/dev/null || true; }

node_is_recent() { command -v npm >/dev/null && [ "$(node_major)" -ge 18 ] 2>/dev/null; }

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  # Without systemd, packages must not start their services: we start and stop them ourselves.
  local policy=/usr/sbin/policy-rc.d made_policy=
  if { [ ! -d /run/systemd/system ] || [ -n "${unstarted:-}" ]; } && [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    made_policy=yes
  fi
  local code=0
  { apt_get update && apt_get install -y --no-install-recommends "$@"; } </dev/null || code=$?
  [ -z "$made_policy" ] || rm -f "$policy"
  return "$code"
}

# How long to wait for another program that uses apt.
apt_wait_seconds=900 apt_wait_pause=2

# apt_get ARGUMENTS…: waits while another program, such as a second quickstart, has locked apt.
apt_get() {
  local output code=0 started=$SECONDS told=''
  output=$(mktemp)
  while code=0; LC_ALL=C apt-get -q -o DPkg::Lock::Timeout=30 "$@" 2>&1 | tee "$output" || code=$?; do
    [ "$code" != 0 ] && grep -qE 'Could not get lock|Unable to lock|Unable to acquire the dpkg' "$output" &&
      [ $((SECONDS - started)) -lt "$apt_wait_seconds" ] || break
    [ -n "$told" ] || printf '\n    waiting for another program that uses apt\n' >&8
    told=yes
    sleep "$apt_wait_pause"
  done
  rm -f "$output"
  return "$code"
}

ensure_node() {
  node_is_recent && return 0
  [ -z "$(node_major)" ] || [ "$(node_major)" -ge 18 ] ||
    fail "Node $(node_major) is too old: 18 or later is required. Remove it and run this again to install Debian's."
  step "installing Node and npm (apt)" install_packages nodejs npm ca-certificates ||
    fail "apt could not install nodejs and npm. Fix apt (see above) or install Node 18 or later yourself."
}

# Tools for the examples in the documentation. Optional, and only root can install them.
ensure_client_tools() {
  local needed=() tool
  for tool in curl jq; do command -v "$tool" >/dev/null || needed+=("$tool"); done
  [ ${#needed[@]} = 0 ] || [ "$(id -u)" != 0 ] || step "installing ${needed[*]} (apt)" install_packages "${needed[@]}" ||
    fail "apt could not install ${needed[*]}. Fix apt (see above) or install them yourself."
}

docker_answers() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

# ensure_docker FOLDER: makes sure that Docker is running. Records in FOLDER what it started, for stop_docker.
ensure_docker() {
  local folder=$1
  docker_answers && return 0
  if ! command -v dockerd >/dev/null; then
    step "installing Docker (apt)" install_packages docker.io iptables ca-certificates ||
      fail "apt could not install docker.io. Fix apt (see above) or install Docker Engine yourself."
  fi
  # Debian 13 has the client in a separate package.
  command -v docker >/dev/null || step "installing the Docker client (apt)" install_packages docker-cli ||
    fail "apt could not install docker-cli. Fix apt (see above) or install the Docker client yourself."
  docker_answers && return 0
  step "starting Docker" start_docker "$folder" ||
    fail "Docker failed to start. Its last log lines are above; the full log is in $(docker_log "$folder")." \
      "Start Docker yourself (docker info must work) and run this again."
}

docker_log() { if [ -d /run/systemd/system ]; then echo '`journalctl -u docker`'; else echo "$1/dockerd.log"; fi; }

start_docker() {
  local folder=$1 pid='' waited
  mkdir -p "$folder"
  if [ -d /run/systemd/system ]; then
    touch "$folder/dockerd.systemd"
    systemctl start docker || { journalctl -u docker -n 20 --no-pager; return 1; }
  else
    setsid dockerd >"$folder/dockerd.log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
    pid=$!
    echo "$pid" >"$folder/dockerd.pid"
  fi
  for waited in $(seq 120); do
    ! docker_answers || return 0
    [ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || break
    sleep 0.5
  done
  # dockerd logs a lot; show only errors.
  [ -z "$pid" ] || grep -E '^failed|level=(error|fatal)' "$folder/dockerd.log" | tail -n 5
  stop_docker "$folder"
  return 1
}

# stop_docker FOLDER: stops the engine only if ensure_docker started it.
stop_docker() {
  local folder=$1 pid waited
  if [ -e "$folder/dockerd.systemd" ]; then
    systemctl stop docker.socket docker 2>/dev/null || true
    rm -f "$folder/dockerd.systemd"
  fi
  [ -e "$folder/dockerd.pid" ] || return 0
  pid=$(cat "$folder/dockerd.pid")
  # After a reboot, the pid may belong to another program.
  if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q '^\(\S*/\)\?dockerd '; then
    kill "$pid" 2>/dev/null || true
    for waited in $(seq 60); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.5
    done
  fi
  rm -f "$folder/dockerd.pid"
}

# For the tests' containers.
ensure_busybox() {
  [ -x /bin/busybox ] || step "installing busybox (apt)" install_packages busybox-static ||
    fail "apt could not install busybox-static. Fix apt (see above)."
}

# Tools for the drills: a registry, network and clock faults, PostgreSQL and a connection pool. Without them, the drills that
# need them are skipped, and the summary says so.
ensure_drill_tools() {
  local needed=()
  [ -x /usr/bin/docker-registry ] || needed+=(docker-registry)
  [ -x /usr/bin/htpasswd ] || needed+=(apache2-utils)
  command -v ip >/dev/null || needed+=(iproute2)
  command -v iptables >/dev/null || needed+=(iptables)
  command -v faketime >/dev/null || needed+=(faketime)
  [ -x /usr/sbin/pgbouncer ] || needed+=(pgbouncer)
  [ ${#needed[@]} = 0 ] || step "installing tools for drills (apt)" install_packages "${needed[@]}" ||
    fail "apt could not install ${needed[*]} (see above). The drills that need them are skipped."
  ensure_postgres_programs
}

# Debian roots for tests on machines with systemd. Without them, those tests are skipped, and the summary says so.
ensure_roots() {
  local suites=(bookworm) suite
  [ "${1:-}" = '' ] || [ "$1" = --systemd ] || return 0
  [ "${1:-}" = '' ] || suites+=(trixie)
  docker_answers && [ "$(id -u)" = 0 ] || return 0
  command -v debootstrap >/dev/null || step "installing debootstrap (apt)" install_packages debootstrap ||
    fail "apt could not install debootstrap (see above). Tests that need their own machines are skipped."
  for suite in "${suites[@]}"; do
    step "creating a Debian root ($suite)" scripts/lib/build-debian-root.sh "$suite" "fairlead-test/$suite:1" ||
      fail "could not create a Debian root (see above). Tests that need their own machines are skipped."
  done
}

# Removes machines of aborted tests: containers whose owner process has ended.
remove_boxes() {
  local box owner waited
  docker_answers || return 0
  for box in $(docker ps --all --quiet --filter label=dev.fairlead.test.owner); do
    owner=$(docker inspect --format '{{index .Config.Labels "dev.fairlead.test.owner"}}' "$box" 2>/dev/null) || continue
    for waited in $(seq 10); do
      [ -e "/proc/$owner" ] || break
      sleep 0.5
    done
    [ -e "/proc/$owner" ] || docker rm --force --volumes "$box" >/dev/null 2>&1 || true
  done
}

# A browser for the tests of the pages. Without it, they are skipped, and the summary says so.
ensure_chromium() {
  [ -x /usr/bin/chromium ] || step "installing Chromium (apt)" install_packages chromium ||
    fail "apt could not install chromium (see above). The tests of the pages are skipped."
}

# ensure_proxies: squid, tinyproxy and nginx for the tests, which start them themselves; never as services.
ensure_proxies() {
  [ -x /usr/sbin/squid ] && [ -x /usr/bin/tinyproxy ] && [ -x /usr/sbin/nginx ] && return 0
  step "installing squid, tinyproxy, nginx (apt)" install_proxies ||
    fail "apt could not install squid, tinyproxy and nginx-light (see above). Tests with proxies are skipped."
}

install_proxies() {
  unstarted=yes install_packages squid tinyproxy nginx-light || return 1
  [ ! -d /run/systemd/system ] || systemctl disable --quiet squid tinyproxy nginx
}

# PostgreSQL 15 or later: Debian 12 has 15, Debian 13 has 17.
postgres_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }

ensure_postgres_programs() {
  if [ -z "$(postgres_bin)" ] || [ ! -x "$(postgres_bin)/initdb" ]; then
    step "installing PostgreSQL (apt)" install_postgres ||
      fail "apt could not install postgresql. Fix apt (see above)."
  fi
}

# ensure_postgres FOLDER: starts a server for the tests and sets FAIRLEAD_TEST_POSTGRES_URL.
ensure_postgres() {
  local folder=$1 port
  ensure_postgres_programs
  port=$(free_port)
  step "starting PostgreSQL" start_postgres "$folder/postgres" "$port" || fail "PostgreSQL failed to start; see above."
  export FAIRLEAD_TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
}

# Without the main cluster that Debian's package would create and start.
install_postgres() {
  install -d /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/fairlead-tests.conf
  install_packages postgresql
}

# Outside the ephemeral port range, so that no connection takes it before the server starts.
free_port() {
  scripts/lib/with-node node -e 'const look=()=>require("net").createServer().once("error",look).listen(20000+Math.floor(Math.random()*12000),"127.0.0.1",function(){console.log(this.address().port);this.close()});look()'
}

# PostgreSQL does not run as root, so it runs as the package's user.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

# The data is temporary, so fsync is off.
start_postgres() {
  local folder=$1 port=$2
  mkdir -p "$folder"
  [ "$(id -u)" != 0 ] || { chmod 711 "$(dirname "$folder")" && chown postgres "$folder"; }
  as_postgres "$(postgres_bin)/initdb" --auth=trust --username=postgres --encoding=UTF8 --pgdata="$folder/data" &&
    as_postgres "$(postgres_bin)/pg_ctl" --pgdata="$folder/data" --log="$folder/log" --wait \
      --options="-p $port -c listen_addresses=127.0.0.1 -k '' -c fsync=off -c max_connections=200" start 8>&- ||
    { cat "$folder/log"; return 1; }
}

stop_postgres() {
  [ ! -e "$1/postgres/data/postmaster.pid" ] ||
    as_postgres "$(postgres_bin)/pg_ctl" --pgdata="$1/postgres/data" --mode=immediate stop >/dev/null || true
}

# If root runs this in another user's checkout, new files must belong to that user.
as_owner() {
  local owner
  owner=$(stat -c %U .)
  if [ "$(id -u)" = 0 ] && [ "$owner" != root ] && id "$owner" >/dev/null 2>&1; then
    runuser -u "$owner" -- env HOME="$(getent passwd "$owner" | cut -d: -f6)" PATH="$PATH" "$@"
  else
    "$@"
  fi
}

lock_hash() { sha256sum package-lock.json | cut -d' ' -f1; }

npm_ci() {
  as_owner npm ci --ignore-scripts --loglevel=error </dev/null && lock_hash >node_modules/.fairlead-lock
}

ensure_dependencies() {
  [ "$(cat node_modules/.fairlead-lock 2>/dev/null)" != "$(lock_hash)" ] || return 0
  require_space . 1500
  step "installing npm packages (npm ci)" npm_ci ||
    fail "npm ci failed; see above. If it was a network problem, run this again to continue."
}

# Third-party programs: clients of the inference host, and guests that run as agents. Without them,
# their tests are skipped, and the summary says so.
ensure_outside() {
  local what=$1 hash
  hash=$(sha256sum "test/$what/package-lock.json" | cut -d' ' -f1)
  [ "$(cat "test/$what/node_modules/.fairlead-lock" 2>/dev/null)" != "$hash" ] || return 0
  require_space . 1000
  step "installing outside $what (npm ci, 650 MB)" outside_ci "$what" "$hash" ||
    fail "npm ci failed in test/$what; see above. Tests with outside $what are skipped."
}

outside_ci() {
  as_owner npm ci --prefix "test/$1" --ignore-scripts --loglevel=error </dev/null &&
    echo "$2" >"test/$1/node_modules/.fairlead-lock"
}

build() {
  step "building" as_owner scripts/lib/build packages/cli packages/daemon ||
    fail "The build failed; see above. In a clone without changes, delete node_modules and run this again."
}
