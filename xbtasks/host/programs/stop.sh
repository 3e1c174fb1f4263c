# stop MARKER: end the step that bears the marker, if it still runs, and wait until nothing of it is left.
for folder in "${TMPDIR:-/tmp}/xbtasks.$1".*; do
  [ -d "$folder" ] || continue
  pid=$(cat "$folder/pid" 2>/dev/null) || continue
  kill -TERM "$pid" 2>/dev/null
  patience=120
  while [ -d "$folder" ] && [ "$patience" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
    sleep 0.1
    patience=$((patience - 1))
  done
  if [ -d "$folder" ]; then
    kill -KILL "$pid" 2>/dev/null
    rm -rf "$folder"
    [ "$patience" -gt 0 ] || { echo "it had to be killed" >&2; exit 1; }
  fi
done
