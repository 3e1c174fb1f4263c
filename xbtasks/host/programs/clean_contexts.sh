# clean_contexts BASE SCOPE: remove unfinished contexts and the temporary folders of steps that are no more;
# with SCOPE "all" every context folder named by a digest.
case $1 in
"~/"*) base=${HOME:?no home directory}/${1#"~/"} ;;
*) base=$1 ;;
esac
for folder in "$base"/.incoming.* "$base"/*; do
  [ -d "$folder" ] && [ ! -L "$folder" ] || continue
  name=${folder##*/}
  case $name in
  .incoming.*) ;;
  *[!0-9a-f]*) continue ;;
  *) [ "$2" = all ] && [ "${#name}" = 64 ] || continue ;;
  esac
  rm -rf "$folder" && echo "context $folder"
done
for folder in "${TMPDIR:-/tmp}"/xbtasks.xb-*; do
  [ -d "$folder" ] && [ ! -L "$folder" ] && [ -r "$folder" ] && [ -w "$folder" ] || continue
  if pid=$(cat "$folder/pid" 2>/dev/null) && [ -n "$pid" ]; then
    kill -0 "$pid" 2>/dev/null && continue
  elif [ -z "$(find "$folder" -prune -mmin +1)" ]; then
    continue # it may be in the making
  fi
  rm -rf "$folder" && echo "temporary $folder"
done
[ "$2" != all ] || rmdir "$base" 2>/dev/null || :
