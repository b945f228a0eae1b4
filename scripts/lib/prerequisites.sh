# What a Debian machine needs before anything of Fairlead runs. Sourced by scripts/quickstart and scripts/test from the
# root of the checkout. Every function does nothing where nothing is missing. Errors say what to do.

# step TEXT COMMAND…: one progress line; the command's output is kept back, and shown when it fails.
step() {
  local title=$1 log started=$SECONDS
  shift
  log=$(mktemp)
  printf '  %-44s' "$title"
  if "$@" >"$log" 2>&1; then
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

fail() {
  printf '\n%s\n' "$@" >&2
  exit 1
}

free_megabytes() { df --output=avail -BM "$1" | tail -n 1 | tr -dc '0-9'; }

explain_full_disk() {
  local folder
  for folder in . /tmp /var/lib; do
    [ "$(free_megabytes "$folder")" -ge 50 ] ||
      printf '\nThe disk of %s is full (%s MB left). Free some space and run this again.\n' \
        "$(realpath "$folder")" "$(free_megabytes "$folder")" >&2
  done
}

require_space() {
  local folder=$1 megabytes=$2
  [ "$(free_megabytes "$folder")" -ge "$megabytes" ] ||
    fail "The disk of $folder has $(free_megabytes "$folder") MB left, and $megabytes MB are needed. Free some space and run this again."
}

# node_major prints nothing where there is no Node.
node_major() { node -p 'parseInt(process.versions.node)' 2>/dev/null || true; }

node_is_recent() { command -v npm >/dev/null && [ "$(node_major)" -ge 18 ] 2>/dev/null; }

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  # Where no systemd runs, a package must not start its service behind our back: we start and stop it ourselves.
  local policy=/usr/sbin/policy-rc.d made_policy=
  if [ ! -d /run/systemd/system ] && [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    made_policy=yes
  fi
  local code=0
  { apt-get -q update && apt-get -q install -y --no-install-recommends "$@"; } </dev/null || code=$?
  [ -z "$made_policy" ] || rm -f "$policy"
  return "$code"
}

ensure_node() {
  node_is_recent && return 0
  [ -z "$(node_major)" ] || [ "$(node_major)" -ge 18 ] ||
    fail "Node $(node_major) is too old: 18 or later is needed. Remove it, and this script installs Debian's."
  step "installing Node and npm (apt)" install_packages nodejs npm ca-certificates ||
    fail "apt could not install nodejs and npm. Mend apt (see above), or install Node 18 or later yourself."
}

docker_answers() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

# ensure_docker FOLDER: an engine answers afterwards. What this started is remembered in FOLDER, for stop_docker.
ensure_docker() {
  local folder=$1
  docker_answers && return 0
  if ! command -v dockerd >/dev/null; then
    step "installing Docker (apt)" install_packages docker.io iptables ca-certificates ||
      fail "apt could not install docker.io. Mend apt (see above), or install a Docker engine yourself."
  fi
  # Debian 13 has the client in a package of its own.
  command -v docker >/dev/null || step "installing the Docker client (apt)" install_packages docker-cli ||
    fail "apt could not install docker-cli. Mend apt (see above), or install the Docker client yourself."
  docker_answers && return 0
  step "starting Docker" start_docker "$folder" ||
    fail "Docker does not start. Its last words are above; all of them are in $(docker_log "$folder")." \
      "Start a Docker engine by other means (docker info must answer) and run this again."
}

docker_log() { if [ -d /run/systemd/system ]; then echo '`journalctl -u docker`'; else echo "$1/dockerd.log"; fi; }

start_docker() {
  local folder=$1 pid='' waited
  mkdir -p "$folder"
  if [ -d /run/systemd/system ]; then
    touch "$folder/dockerd.systemd"
    systemctl start docker || { journalctl -u docker -n 20 --no-pager; return 1; }
  else
    setsid dockerd >"$folder/dockerd.log" 2>&1 </dev/null 9>&- &
    pid=$!
    echo "$pid" >"$folder/dockerd.pid"
  fi
  for waited in $(seq 120); do
    ! docker_answers || return 0
    [ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || break
    sleep 0.5
  done
  # dockerd talks a lot; what stopped it stands in few lines.
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
  # After a reboot the number may be another program's.
  if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q '^\(\S*/\)\?dockerd '; then
    kill "$pid" 2>/dev/null || true
    for waited in $(seq 60); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.5
    done
  fi
  rm -f "$folder/dockerd.pid"
}

# A small program for the tests' own containers.
ensure_busybox() {
  [ -x /bin/busybox ] || step "installing busybox (apt)" install_packages busybox-static ||
    fail "apt could not install busybox-static. Mend apt (see above)."
}

# What the drills need beside Docker: a registry, networks that can be cut, a clock that can be wrong. Where they cannot be had,
# the drills that need them are skipped, and the summary says so.
ensure_drill_tools() {
  local needed=()
  [ -x /usr/bin/docker-registry ] || needed+=(docker-registry)
  [ -x /usr/bin/htpasswd ] || needed+=(apache2-utils)
  command -v ip >/dev/null || needed+=(iproute2)
  command -v iptables >/dev/null || needed+=(iptables)
  command -v faketime >/dev/null || needed+=(faketime)
  [ ${#needed[@]} = 0 ] || step "installing tools for drills (apt)" install_packages "${needed[@]}" ||
    fail "apt could not install ${needed[*]} (see above). The drills that need them are not run here."
}

# Debian roots for the tests on machines that systemd runs. Where they cannot be had, those are skipped, and the summary says so.
ensure_roots() {
  local suites=(bookworm) suite
  [ "${1:-}" = '' ] || [ "$1" = --systemd ] || return 0
  [ "${1:-}" = '' ] || suites+=(trixie)
  docker_answers && [ "$(id -u)" = 0 ] || return 0
  command -v debootstrap >/dev/null || step "installing debootstrap (apt)" install_packages debootstrap ||
    fail "apt could not install debootstrap (see above). What needs machines of its own is not tested here."
  for suite in "${suites[@]}"; do
    step "making a Debian root ($suite)" scripts/lib/build-debian-root.sh "$suite" "fairlead-test/$suite:1" ||
      fail "no Debian root could be made (see above). What needs machines of its own is not tested here."
  done
}

# Machines of tests that were broken off: containers whose owner does not run any more.
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

# A browser for the tests of the pages. Where there is none, they are skipped, and the summary says so.
ensure_chromium() {
  [ -x /usr/bin/chromium ] || step "installing Chromium (apt)" install_packages chromium ||
    fail "apt could not install chromium (see above). The pages are not tested here."
}

# PostgreSQL 15 or later: Debian 12 has 15, Debian 13 has 17.
postgres_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }

# ensure_postgres FOLDER: starts a server of the tests' own; its address goes into FAIRLEAD_TEST_POSTGRES_URL.
ensure_postgres() {
  local folder=$1 port
  if [ -z "$(postgres_bin)" ] || [ ! -x "$(postgres_bin)/initdb" ]; then
    step "installing PostgreSQL (apt)" install_postgres ||
      fail "apt could not install postgresql. Mend apt (see above)."
  fi
  port=$(free_port)
  step "starting PostgreSQL" start_postgres "$folder/postgres" "$port" || fail "PostgreSQL does not start; see above."
  export FAIRLEAD_TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
}

# Without the main cluster that Debian's package would make and start.
install_postgres() {
  install -d /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/fairlead-tests.conf
  install_packages postgresql
}

# None of those that the system hands out to connections: one of them could take it before its server does.
free_port() {
  scripts/lib/with-node node -e 'const look=()=>require("net").createServer().once("error",look).listen(20000+Math.floor(Math.random()*12000),"127.0.0.1",function(){console.log(this.address().port);this.close()});look()'
}

# PostgreSQL refuses to run as root, so it runs as the package's own user.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

# Its data is thrown away with the folder, so nothing needs to reach the disk.
start_postgres() {
  local folder=$1 port=$2
  mkdir -p "$folder"
  [ "$(id -u)" != 0 ] || { chmod 711 "$(dirname "$folder")" && chown postgres "$folder"; }
  as_postgres "$(postgres_bin)/initdb" --auth=trust --username=postgres --encoding=UTF8 --pgdata="$folder/data" &&
    as_postgres "$(postgres_bin)/pg_ctl" --pgdata="$folder/data" --log="$folder/log" --wait \
      --options="-p $port -c listen_addresses=127.0.0.1 -k '' -c fsync=off -c max_connections=200" start ||
    { cat "$folder/log"; return 1; }
}

stop_postgres() {
  [ ! -e "$1/postgres/data/postmaster.pid" ] ||
    as_postgres "$(postgres_bin)/pg_ctl" --pgdata="$1/postgres/data" --mode=immediate stop >/dev/null || true
}

# Run by root in somebody's checkout, files must stay theirs.
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
    fail "npm ci failed; see above. With a network problem, run this again: it goes on where it stopped."
}

# Programs of others: clients that our inference host has to get along with, and guests that run as agents. Where they cannot be had,
# their tests are skipped, and the summary says so.
ensure_outside() {
  local what=$1 hash
  hash=$(sha256sum "test/$what/package-lock.json" | cut -d' ' -f1)
  [ "$(cat "test/$what/node_modules/.fairlead-lock" 2>/dev/null)" != "$hash" ] || return 0
  require_space . 1000
  step "installing outside $what (npm ci, 650 MB)" outside_ci "$what" "$hash" ||
    fail "npm ci failed in test/$what; see above. The outside $what are not tested here."
}

outside_ci() {
  as_owner npm ci --prefix "test/$1" --ignore-scripts --loglevel=error </dev/null &&
    echo "$2" >"test/$1/node_modules/.fairlead-lock"
}

build() {
  step "building" as_owner scripts/lib/build packages/cli packages/daemon ||
    fail "The build failed; see above. In an unchanged clone, remove node_modules and run this again."
}
