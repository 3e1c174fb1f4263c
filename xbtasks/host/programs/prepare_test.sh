# prepare_test DIR LIBRARY PRELOAD OPEN... (stdin: a sha256, then base64 of the gzipped tar of
# the probe's sources that has it)
# Make a run's test directory: a copy of LIBRARY with its mode, a preload file that names PRELOAD, the sources,
# and a directory for each OPEN that everybody may write to. Prints the mode and the sha256 of the copy.
set -eu
dir=$1 library=$2 preload=$3
shift 3
umask 022
mkdir -p "${dir%/*}"
mkdir "$dir" "$dir/source"
cp -p "$library" "$dir/library.so"
printf '%s\n' "$preload" >"$dir/ld.so.preload"
read -r sent
base64 -d >"$dir/source.tar.gz" || : # the digest decides
found=$(sha256sum <"$dir/source.tar.gz")
[ "${found%% *}" = "$sent" ] || { echo "the probe's sources were corrupt when they arrived" >&2; exit 65; }
tar -xzf "$dir/source.tar.gz" -C "$dir/source"
for name in "$@"; do
  mkdir "$dir/$name"
  chmod 0777 "$dir/$name"
done
found=$(sha256sum <"$dir/library.so")
printf '%s %s\n' "$(stat -c %a "$dir/library.so")" "${found%% *}"
