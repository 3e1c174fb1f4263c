# context_state BASE DIGEST: print the context folder's absolute path and whether it is there.
case $1 in
"~/"*) base=${HOME:?no home directory}/${1#"~/"} ;;
*) base=$1 ;;
esac
printf '%s\n' "$base/$2"
if [ -d "$base/$2" ]; then echo present; else echo absent; fi
