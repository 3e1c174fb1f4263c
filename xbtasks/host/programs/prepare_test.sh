# prepare_test DIR ENGINE CONTAINER LIBRARY MODE PRELOAD OPEN... (stdin: a sha256, then base64 of the gzipped tar
# of the probe's sources that has it)
# Make a run's test directory: CONTAINER's file LIBRARY with MODE, a preload file that names PRELOAD, the sources,
# and a directory for each OPEN that everybody may write to. Prints the mode and the sha256 of the library.
set -eu
dir=$1 engine=$2 container=$3 library=$4 mode=$5 preload=$6
shift 6
umask 022
mkdir -p "${dir%/*}"
mkdir "$dir" "$dir/source"
"$engine" cp "$container:$library" "$dir/library.so" >/dev/null
chmod "$mode" "$dir/library.so"
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
