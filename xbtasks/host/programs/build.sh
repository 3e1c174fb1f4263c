# build BASE ENGINE TAG INPUTS COMMAND...: run a build that is to give TAG to an image labelled with INPUTS.
# Its progress is on stderr, its metadata (JSON) on stdout; the command is told to write them to a file. The exit
# status is the build's own. The image is noted under BASE as one that xbtasks built, even where the build was
# stopped when the engine had the image already: what isn't noted is never removed.
case $1 in
"~/"*) base=${HOME:?no home directory}/${1#"~/"} ;;
*) base=$1 ;;
esac
engine=$2 tag=$3 inputs=$4
shift 4
identify() { # IMAGE: print its id and the inputs that it says it was built from
  "$engine" image inspect --format '{{.Id}} {{with .Config}}{{index .Labels "xbtasks.inputs"}}{{end}}' -- "$1" 2>/dev/null
}
# The build says which image it made, by one id or another, whatever its tag names by now. One that was stopped may
# not have come to say anything: there it is what the tag names, if that is new.
note() {
  if [ -s "$metadata" ]; then
    grep -oE '"containerimage\.(config\.)?digest": *"sha256:[0-9a-f]+"' "$metadata" | grep -oE 'sha256:[0-9a-f]+' |
      while read -r id; do record "$id" "$(identify "$id")"; done
  elif [ "$1" -gt 128 ] && now=$(identify "$tag") && [ "$now" != "$before" ]; then record "${now%% *}" "$now"; fi
}
# Labels alone prove nothing, others inherit them; an image without these inputs is none of this build.
record() { # ID FOUND
  id=$1
  [ "$2" = "$id $inputs" ] || return 0
  umask 077
  mkdir -p "$base/.built" || return 0
  record=$base/.built/${id#sha256:}
  if ! grep -qxF -- "$tag" "$record" 2>/dev/null; then printf '%s\n' "$tag" >>"$record"; fi
}
metadata=$(mktemp) || exit 96
trap 'rm -f "$metadata"' EXIT
before=$(identify "$tag")
trap 'trap "" HUP INT TERM; kill -TERM "$child" 2>/dev/null; wait "$child"; note 143; exit 143' HUP INT TERM
"$@" --metadata-file "$metadata" >&2 &
child=$!
wait "$child"
status=$?
trap '' HUP INT TERM
note "$status"
cat "$metadata"
exit "$status"
