# built_images BASE: print a line "ID TAG" for each tag that xbtasks gave an image that it built here.
case $1 in
"~/"*) base=${HOME:?no home directory}/${1#"~/"} ;;
*) base=$1 ;;
esac
for record in "$base"/.built/*; do
  [ -f "$record" ] || continue
  while read -r tag; do printf 'sha256:%s %s\n' "${record##*/}" "$tag"; done <"$record" || exit 66
done
