# contained ENGINE NAME SECONDS COMMAND...: run COMMAND, which runs the container NAME, for so many seconds.
# The container never outlives this: where the time is over, or the caller ends it, it is removed by force.
# The exit status is the command's; 124 when the time was over.
engine=$1 name=$2 seconds=$3
shift 3
remove() { "$engine" rm --force --volumes "$name" >/dev/null || echo "container $name may be left" >&2; }
trap 'trap "" TERM; kill -TERM "$child" 2>/dev/null; remove; exit 143' HUP INT TERM
timeout -k 5 "$seconds" "$@" 9<&- &
child=$!
wait "$child"
status=$?
if [ "$status" = 124 ] || [ "$status" = 137 ]; then remove; fi
exit "$status"
