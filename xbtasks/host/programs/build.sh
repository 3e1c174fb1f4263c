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
named() {
  "$engine" image inspect --format '{{.Id}} {{with .Config}}{{index .Labels "xbtasks.inputs"}}{{end}}' -- "$tag" 2>/dev/null
}
# What the tag names now is of this build if it bears its inputs and the build says so. One that was stopped may
# not have come to say anything: there it is if it is new. Labels alone prove nothing, others inherit them.
note() {
  now=$(named)
  id=${now%% *}
  [ "$now" = "$id $inputs" ] || return 0
  if [ -s "$metadata" ]; then
    grep -qF "\"$id\"" "$metadata" || return 0
  elif [ "$1" -le 128 ] || [ "$now" = "$before" ]; then return 0; fi
  umask 077
  mkdir -p "$base/.built" || return 0
  record=$base/.built/${id#sha256:}
  if ! grep -qxF -- "$tag" "$record" 2>/dev/null; then printf '%s\n' "$tag" >>"$record"; fi
}
metadata=$(mktemp) || exit 96
trap 'rm -f "$metadata"' EXIT
before=$(named)
trap 'trap "" HUP INT TERM; kill -TERM "$child" 2>/dev/null; wait "$child"; note 143; exit 143' HUP INT TERM
"$@" --metadata-file "$metadata" >&2 &
child=$!
wait "$child"
status=$?
trap '' HUP INT TERM
note "$status"
cat "$metadata"
exit "$status"
