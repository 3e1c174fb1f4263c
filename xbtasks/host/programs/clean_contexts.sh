# clean_contexts BASE SCOPE: remove unfinished contexts; with SCOPE "all" every folder named by a digest.
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
[ "$2" != all ] || rmdir "$base" 2>/dev/null || :
