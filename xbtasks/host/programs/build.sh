# build COMMAND...: run a build, its progress on stderr, its metadata (JSON) on stdout.
# The command is told to write the metadata to a file; the exit status is the build's own.
metadata=$(mktemp) || exit 96
trap 'rm -f "$metadata"' EXIT
trap 'trap "" TERM; kill -TERM "$child" 2>/dev/null; wait "$child"; exit 143' HUP INT TERM
"$@" --metadata-file "$metadata" >&2 &
child=$!
wait "$child"
status=$?
cat "$metadata"
exit "$status"
