# Runs the blocks in order in this shell, as if pasted. Stops at the first failure.
cd /root/fairlead
. /try/environment
for try_block in /try/*.sh; do
  case $try_block in /try/machine.sh | /try/run-blocks.sh) continue ;; esac
  try_output=${try_block%.sh}.out
  set -e
  # shellcheck disable=SC1090 # a block
  . "$try_block" >"$try_output" 2>&1 </dev/null
  set +e
  : >"${try_block%.sh}.done"
done
# Everything that was started ends with this process, the first of its PID namespace.
