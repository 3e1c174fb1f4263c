# record_built BASE ID TAG: note that xbtasks built the image ID and gave it TAG.
set -eu
case $1 in
"~/"*) base=${HOME:?no home directory}/${1#"~/"} ;;
*) base=$1 ;;
esac
umask 077
mkdir -p "$base/.built"
record=$base/.built/${2#sha256:}
if ! grep -qxF -- "$3" "$record" 2>/dev/null; then printf '%s\n' "$3" >>"$record"; fi
