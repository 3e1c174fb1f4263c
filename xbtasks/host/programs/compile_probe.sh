# compile_probe SOURCE OUTPUT LIBRARY: compile the C files in the directory SOURCE, in a container of an image
# with a compiler; 96 where it has none. Prints LIBRARY's sha256, as the container sees it.
for compiler in cc gcc clang c99 ''; do
  if [ -n "$compiler" ] && command -v "$compiler" >/dev/null 2>&1; then break; fi
done
[ -n "$compiler" ] || { echo "neither cc, gcc, clang nor c99" >&2; exit 96; }
"$compiler" -std=gnu11 -O1 -Wall -Wextra -o "$2" "$1"/*.c -ldl || exit 1
chmod 0755 "$2" || exit 1
found=$(sha256sum <"$3") || exit 97
printf '%s\n' "${found%% *}"
