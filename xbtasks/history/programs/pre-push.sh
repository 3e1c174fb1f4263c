# What every pre-push hook of xbtasks does. Before it stand $mode (warn or block) and, as "$@", the command line
# that tells what to verify.
# shellcheck disable=SC2154
head=$(git rev-parse --verify --quiet HEAD)
concerned=
while read -r ref commit _; do
    # Only what is checked out can be looked at; a deletion and a tag bring no change.
    case $ref in refs/tags/*) continue ;; esac
    [ "$commit" = "$head" ] && concerned=yes
done
[ "$concerned" ] || exit 0

finish() {
    [ "$mode" = warn ] && exit 0
    echo "xbtasks: the push is refused; git push --no-verify does it all the same" >&2
    exit 1
}
unsure() {
    echo "xbtasks: could not tell which builder stages this push touches: $1" >&2
    finish
}

[ -x "$1" ] || unsure "$1 is gone; to be rid of this hook: rm $0"
answer=$("$@" 2>&1 </dev/null)
code=$?
case $code in
    0) exit 0 ;;
    1) ;;
    130) exit 130 ;;
    *) unsure "$answer" ;;
esac
echo "xbtasks: this branch touches builder stages; to verify them:" >&2
printf '%s\n' "$answer" | sed 's/^/  /' >&2
finish
