# What every pre-push hook of xbtasks does. Before it stand $mode (warn or block) and, as "$@", the command line
# that tells what to verify in a commit. git says on stdin what is pushed, a line for each ref.
# shellcheck disable=SC2154
unsure() {
    echo "xbtasks: could not tell which builder stages this push touches: $1" >&2
    held=$mode
}

head=$(git rev-parse --verify --quiet HEAD)
held='' seen=''
while read -r ref commit there _; do
    # A deletion and a tag bring no change.
    case $ref:$there in "(delete):"* | *:refs/tags/*) continue ;; esac
    case $seen in *" $commit "*) continue ;; esac
    seen="$seen $commit "
    if [ ! -x "$1" ]; then
        unsure "$1 is gone; to be rid of this hook: rm $0"
        break
    fi
    answer=$("$@" --commit="$commit" 2>&1 </dev/null)
    case $? in
        0) continue ;;
        1) ;;
        130) exit 130 ;;
        *)
            unsure "$answer"
            continue
            ;;
    esac
    held=$mode
    if [ "$commit" = "$head" ]; then what="this branch" first=''; else what=$ref first=", once it is checked out"; fi
    echo "xbtasks: $what touches builder stages; to verify them$first:" >&2
    printf '%s\n' "$answer" | sed 's/^/  /' >&2
done
if [ "$held" = block ]; then
    echo "xbtasks: the push is refused; git push --no-verify does it all the same" >&2
    exit 1
fi
