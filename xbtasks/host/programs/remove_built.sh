# remove_built BASE ENGINE ID REFERENCE...: remove the references of an image that xbtasks built, and its record.
# Not forced: an image in use stays.
case $1 in
"~/"*) base=${HOME:?no home directory}/${1#"~/"} ;;
*) base=$1 ;;
esac
engine=$2 id=$3 status=0
shift 3
for reference in "$@"; do
  if "$engine" image rm -- "$reference" >/dev/null; then echo "image $reference"; else status=1; fi
done
if [ "$status" = 0 ]; then rm -f "$base/.built/${id#sha256:}" && rmdir "$base/.built" 2>/dev/null; fi
exit "$status"
