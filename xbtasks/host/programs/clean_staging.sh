# clean_staging DIR MANIFEST SCOPE (PATH SHA256)...: remove unfinished sets and the runs' test directories; with
# SCOPE "all" the files that have those bytes still, and the manifest. What was changed since is somebody's, and
# stays.
dir=$1 manifest=$2 scope=$3
shift 3
ours=
test='[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
for file in "$dir/$manifest" "$dir/$manifest.next" "$dir"/.xbtasks-incoming.* "$dir"/test/$test; do
  if [ -e "$file" ]; then ours=yes; fi
done
[ "$ours" ] || exit 0
exec 9>>"$dir/.xbtasks.lock" || exit 66
flock -w 60 9 || { echo "$dir: another run holds it" >&2; exit 75; }
for folder in "$dir"/.xbtasks-incoming.* "$dir"/test/$test; do
  [ -d "$folder" ] && [ ! -L "$folder" ] || continue
  rm -rf "$folder" && echo "unfinished $folder"
done
rmdir "$dir/test" 2>/dev/null || :
if [ "$scope" = all ]; then
  while [ $# -gt 0 ]; do
    file=$dir/$1
    if [ -f "$file" ] && [ ! -L "$file" ]; then
      found=$(sha256sum <"$file")
      if [ "${found%% *}" = "$2" ]; then rm -f "$file" && echo "staged $file"
      else echo "$file: changed just now, not removed" >&2
      fi
      rmdir "${file%/*}" 2>/dev/null || :
    fi
    shift 2
  done
  for file in "$dir/$manifest" "$dir/$manifest.next"; do
    [ ! -f "$file" ] || { rm -f "$file" && echo "manifest $file"; }
  done
fi
rm -f "$dir/.xbtasks.lock"
[ "$scope" != all ] || rmdir "$dir" 2>/dev/null || :
