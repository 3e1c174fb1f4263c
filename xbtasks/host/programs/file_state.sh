# file_state PATH...: one line per path, in order: kind, octal mode, sha256 ("-" where there is none).
for path in "$@"; do
  case $path in
  "~/"*) path=${HOME:?no home directory}/${path#"~/"} ;;
  esac
  mode=- digest=-
  if [ -L "$path" ]; then kind=symlink
  elif [ -f "$path" ]; then kind=file mode=$(stat -c %a "$path") && digest=$(sha256sum <"$path") || exit 66
  elif [ -d "$path" ]; then kind=directory
  elif [ -e "$path" ]; then kind=other
  else kind=missing
  fi
  printf '%s %s %s\n' "$kind" "$mode" "${digest%% *}"
done
