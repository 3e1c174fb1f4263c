# hold SECONDS LOCK... -- COMMAND...: run COMMAND while every LOCK is held, which may be had by any user.
# Each lock is waited for that long, else 75. The file is only ever opened for reading: in a sticky directory a
# kernel may forbid to open somebody else's for writing. It goes when it isn't held any more, also where the process
# group is signalled: COMMAND takes the signal as it likes, and is waited for.
wait=$1
shift
cannot() { echo "$1" >&2; exit 75; }
held() {
  if [ "$1" = -- ]; then
    shift
    exec "$@"
  fi
  trap : HUP INT TERM
  lock=$1
  shift
  (
    until [ "$lock" -ef /dev/fd/9 ]; do
      [ -e "$lock" ] || (umask 0; : >>"$lock") 2>/dev/null || [ -e "$lock" ] || cannot "$lock: can't be made"
      # "command": else the shell ends where the file has just gone
      if { command exec 9<"$lock"; } 2>/dev/null; then
        flock -w "$wait" 9 || cannot "$lock: another run holds it for $wait s already"
      elif [ -e "$lock" ]; then cannot "$lock: can't be opened"
      fi
    done
    trap : HUP INT TERM
    (held "$@")
    status=$?
    rm -f "$lock" 2>/dev/null
    exit "$status"
  )
}
held "$@"
