# prepare_slices DIR LIBRARY MONITOR (NAME TEXT)...: make a run's test directory.
# It gets copies of LIBRARY and MONITOR with their modes, and a file of each NAME that holds TEXT, mode 0644.
# Prints a line "NAME MODE SHA256" for each file, as it lies there.
set -eu
dir=$1 library=$2 monitor=$3
shift 3
umask 022
mkdir -p "${dir%/*}"
mkdir "$dir"
tell() {
  found=$(sha256sum <"$dir/$1")
  printf '%s %s %s\n' "$1" "$(stat -c %a "$dir/$1")" "${found%% *}"
}
cp -p "$library" "$dir/libvruntime.so"
cp -p "$monitor" "$dir/enpu-monitor"
tell libvruntime.so
tell enpu-monitor
while [ $# -gt 1 ]; do
  printf %s "$2" >"$dir/$1"
  chmod 0644 "$dir/$1"
  tell "$1"
  shift 2
done
