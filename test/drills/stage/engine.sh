# The first process of every engine of the drills, run by busybox: a small inference server, and what can be wrong with one.
# ENGINE_VERSION is its answer to every question; ENGINE_FAULT says how it misbehaves.

serve() {
  nc -ll -p 8080 -e /bin/busybox sh /answer.sh &
}

case "$ENGINE_FAULT" in
  stubborn) trap '' TERM ;;
  *) trap 'exit 0' TERM ;;
esac

case "$ENGINE_FAULT" in
  broken) echo "no such model" >&2; exit 3 ;;
  slow) sleep 6; serve ;;
  dies-after-ready) serve; sleep 4; exit 4 ;;
  chatty) serve; yes "a line that nobody reads, over and over again" & ;;
  *) serve ;;
esac

while :; do
  sleep 3600 &
  wait $!
done
