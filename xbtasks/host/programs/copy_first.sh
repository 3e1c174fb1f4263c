# copy_first ENGINE CONTAINER PATH...: print a tar of the first PATH that is there, links followed.
engine=$1 container=$2
shift 2
for path in "$@"; do
  "$engine" cp -L "$container:$path" - 2>/dev/null && exit 0
done
echo "no such file or directory: $*" >&2
exit 1
