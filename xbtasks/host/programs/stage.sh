# stage DIR MANIFEST RUN ENGINE CONTAINER (SOURCE PATH MODE SHA256 SEEN KEEP)... (stdin: the manifest)
# Copies each SOURCE out of CONTAINER and puts it at DIR/PATH by rename, the manifest last, under a lock.
# SEEN is what lay at PATH when the caller decided ("missing", or a word of its state): where that has
# changed since, nothing is touched (exit 76). KEEP is "keep" where what lies there is moved beside first.
set -eu
dir=$1 manifest=$2 run=$3 engine=$4 container=$5
shift 5
umask 022
mkdir -p "$dir"
exec 9>>"$dir/.xbtasks.lock"
flock -w 60 9 || { echo "another run holds the staging directory" >&2; exit 75; }
incoming=$dir/.xbtasks-incoming.$run
rm -rf "$incoming"
mkdir "$incoming"
trap 'rm -rf "$incoming"' EXIT
trap 'exit 143' HUP INT TERM
cat >"$incoming/manifest"
digest() { set -- $(sha256sum <"$1"); printf %s "$1"; }
state() {
  if [ -L "$1" ]; then echo symlink
  elif [ -f "$1" ]; then digest "$1"
  elif [ -d "$1" ]; then echo directory
  elif [ -e "$1" ]; then echo other
  else echo missing
  fi
}
each() {
  action=$1
  shift
  count=0
  while [ $# -gt 0 ]; do
    count=$((count + 1))
    "$action" "$1" "$dir/$2" "$3" "$4" "$5" "$6" "$incoming/$count"
    shift 6
  done
}
fetch() { # SOURCE TARGET MODE SHA256 SEEN KEEP NEW
  [ "$(state "$2")" = "$5" ] || { echo "$2 changed while it was being staged" >&2; exit 76; }
  "$engine" cp "$container:$1" "$7" >/dev/null
  [ "$(state "$7")" = "$4" ] || { echo "$1 is not the file that was read from the image" >&2; exit 77; }
  chmod "$3" "$7"
}
put() {
  mkdir -p "${2%/*}"
  if [ "$6" = keep ]; then mv -T "$2" "$2.kept-$run"; fi
  mv -fT "$7" "$2"
}
each fetch "$@"
each put "$@"
mv -f "$incoming/manifest" "$dir/$manifest"
