# staged_state DIR MANIFEST PATH...: describe what lies in a staging directory.
# One line per path, in order: kind, octal mode, sha256 ("-" where there is none); then the manifest.
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
echo manifest
if [ -f "$dir/$manifest" ]; then cat "$dir/$manifest" || exit 66; fi
