# prepare_slices DIR ENGINE CONTAINER LIBRARY MODE MONITOR MODE (NAME TEXT)...: make a run's test directory.
# It gets CONTAINER's files LIBRARY and MONITOR with their MODEs, and a file of each NAME that holds TEXT, mode 0644.
# Prints a line "NAME MODE SHA256" for each file, as it lies there.
set -eu
dir=$1 engine=$2 container=$3
shift 3
umask 022
mkdir -p "${dir%/*}"
mkdir "$dir"
tell() {
  found=$(sha256sum <"$dir/$1")
  printf '%s %s %s\n' "$1" "$(stat -c %a "$dir/$1")" "${found%% *}"
}
for name in libvruntime.so enpu-monitor; do
  "$engine" cp "$container:$1" "$dir/$name" >/dev/null
  chmod "$2" "$dir/$name"
  tell "$name"
  shift 2
done
while [ $# -gt 1 ]; do
  printf %s "$2" >"$dir/$1"
  chmod 0644 "$dir/$1"
  tell "$1"
  shift 2
done
