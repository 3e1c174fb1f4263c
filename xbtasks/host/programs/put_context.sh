# put_context DIR (stdin: a sha256, then base64 of the gzipped tar that has it)
# The folder gets its name only when it is whole; a folder that is already there is left alone.
set -eu
dir=$1
umask 077
mkdir -p "${dir%/*}"
tmp=$(mktemp -d "${dir%/*}/.incoming.XXXXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 143' HUP INT TERM
read -r sent
base64 -d >"$tmp/context.tar.gz" || : # the digest decides
found=$(sha256sum <"$tmp/context.tar.gz")
found=${found%% *}
[ "$found" = "$sent" ] || { echo "it was corrupt when it arrived: sha256 $found, sent $sent" >&2; exit 65; }
# a step of the build may run as any user: what it reads mustn't depend on our umask
umask 022
mkdir "$tmp/tree"
tar -xpzf "$tmp/context.tar.gz" -C "$tmp/tree"
# where another run was quicker its folder stays: it has the same digest
mv -T "$tmp/tree" "$dir" 2>/dev/null || [ -d "$dir" ]
