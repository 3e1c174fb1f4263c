# remove_test DIR: remove a run's test directory, and the directory that it lies in when nothing else does.
if [ -d "$1" ]; then rm -rf "$1" || exit 1; fi
rmdir "${1%/*}" 2>/dev/null || :
