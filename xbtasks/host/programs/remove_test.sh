# remove_test DIR: remove a run's test directory, and the directory that it lies in when nothing else does. Prints
# "gone" where it was not there any more.
if [ -d "$1" ]; then rm -rf "$1" || exit 1; else echo gone; fi
rmdir "${1%/*}" 2>/dev/null || :
