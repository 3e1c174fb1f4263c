# stop MARKER: end the step that bears the marker, if it still runs, and wait until nothing of it is left.
# Its shell does that; where the shell is killed or can't, its command's process group is ended here.
for folder in "${TMPDIR:-/tmp}/xbtasks.$1".*; do
  [ -d "$folder" ] || continue
  pid=$(cat "$folder/pid" 2>/dev/null) || continue
  group=$(cat "$folder/group" 2>/dev/null) || group=''
  kill -TERM "$pid" 2>/dev/null
  patience=120
  while [ -d "$folder" ] && [ "$patience" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
    sleep 0.1
    patience=$((patience - 1))
  done
  if [ -d "$folder" ]; then
    kill -KILL "$pid" 2>/dev/null
    [ -z "$group" ] || kill -KILL "-$group" 2>/dev/null
    rm -rf "$folder"
  fi
done
