# put_file PATH MODE SHA256 ENCODING (stdin: base64 of the file, gzipped first where ENCODING is gzip)
# What lies at PATH is replaced by rename, and only by the file that has that sha256.
set -eu
target=$1 mode=$2 sent=$3 encoding=$4
case $target in
"~/"*) target=${HOME:?no home directory}/${target#"~/"} ;;
esac
umask 077
mkdir -p "${target%/*}/"
tmp=$(mktemp "${target%/*}/.xbtasks-incoming.XXXXXXXX")
trap 'rm -f "$tmp"' EXIT
trap 'exit 143' HUP INT TERM
# the digest decides, whatever these say of the stream
case $encoding in
gzip) base64 -d | gzip -dc ;;
*) base64 -d ;;
esac >"$tmp" || :
found=$(sha256sum <"$tmp")
[ "${found%% *}" = "$sent" ] || { echo "corrupt in transit: sha256 ${found%% *}, sent $sent" >&2; exit 65; }
chmod "$mode" "$tmp"
mv -fT "$tmp" "$target"
