# copy_first ENGINE CONTAINER PATH...: print a tar of the first PATH that is there, links followed.
# Where none is, what the engine said of each is on stderr.
engine=$1 container=$2
shift 2
for path in "$@"; do
  "$engine" cp -L "$container:$path" - && exit 0
done
exit 1
