#!/bin/sh
# Starts the installed daemon as its unit does: the guard of a version on trial before each start, and again whenever it ends but
# for the codes that say "never again".
# supervisor.sh ROOT TRIAL_SECONDS (a command line of a checkout's daemon, whose program is left out) ARGUMENTS…
root=$1
export FAIRLEAD_DAEMON_TRIAL_SECONDS="$2"
shift 4
trap 'kill -TERM "$daemon"; wait "$daemon"; exit 0' TERM
while :; do
  [ ! -r "$root/trial/guard.sh" ] || /bin/sh "$root/trial/guard.sh"
  setpriv --pdeathsig KILL "$root/current/bin/fairlead-daemon" "$@" &
  daemon=$!
  wait "$daemon"
  code=$?
  echo "supervisor: the daemon ended with $code"
  case $code in 2 | 5) exit "$code" ;; esac
  sleep 1
done
