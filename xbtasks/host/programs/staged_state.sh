# staged_state DIR MANIFEST PATH...: describe what lies in a staging directory.
# One line per path, in order: kind, octal mode, sha256 ("-" where there is none); then the manifest, and
# the one of a set that was not put to its end, in base64.
dir=$1 manifest=$2
shift 2
for path in "$@"; do
  file=$dir/$path mode=- digest=-
  if [ -L "$file" ]; then kind=symlink
  elif [ -f "$file" ]; then kind=file mode=$(stat -c %a "$file") && digest=$(sha256sum <"$file") && digest=${digest%% *} || exit 66
  elif [ -d "$file" ]; then kind=directory
  elif [ -e "$file" ]; then kind=other
  else kind=missing
  fi
  printf '%s %s %s\n' "$kind" "$mode" "$digest"
done
document() {
  text=
  if [ -f "$2" ]; then text=$(base64 <"$2") || exit 66; fi
  printf '%s %s\n' "$1" "$(printf %s "$text" | tr -d '\n')"
}
document manifest "$dir/$manifest"
document next "$dir/$manifest.next"
