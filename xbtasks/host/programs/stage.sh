# stage DIR MANIFEST RUN ENGINE CONTAINER (SOURCE PATH MODE SHA256 SEEN KEEP)... (stdin: the manifest)
# Copies each SOURCE out of CONTAINER and puts it at DIR/PATH by rename, the manifest last, under a lock.
# SEEN is what lay at PATH when the caller decided ("missing", or a word of its state): where that has
# changed since, nothing is touched (exit 76). KEEP is "keep" where what lies there is moved beside first.
# While files are being put, MANIFEST.next says what they are. Prints what staged_state prints, still locked.
set -eu
dir=$1 manifest=$2 run=$3 engine=$4 container=$5
shift 5
umask 022
while :; do
  mkdir -p "$dir"
  exec 9>>"$dir/.xbtasks.lock"
  flock -w 60 9 || { echo "another run holds the staging directory" >&2; exit 75; }
  # whoever held it may have removed the file with the directory
  if [ "$dir/.xbtasks.lock" -ef /dev/fd/9 ]; then break; fi
done
incoming=$dir/.xbtasks-incoming.$run
rm -rf "$dir"/.xbtasks-incoming.* # of runs that were killed: whoever holds the lock is the only one at work
mkdir "$incoming"
trap 'rm -rf "$incoming"' EXIT
trap 'exit 143' HUP INT TERM
cat >"$incoming/manifest"
digest() { sum=$(sha256sum <"$1") && printf %s "${sum%% *}"; }
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
  mkdir -p "${2%/*}"
}
put() {
  if [ "$6" = keep ]; then mv -T "$2" "$2.kept-$run"; fi
  mv -fT "$7" "$2"
}
report() { printf 'file %s %s\n' "$(stat -c %a "$2")" "$(digest "$2")"; }
each fetch "$@"
cp "$incoming/manifest" "$dir/$manifest.next"
each put "$@"
mv -f "$dir/$manifest.next" "$dir/$manifest"
each report "$@"
printf 'manifest %s\n' "$(base64 <"$dir/$manifest" | tr -d '\n')"
echo next
