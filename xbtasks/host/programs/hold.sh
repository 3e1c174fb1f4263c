# hold SECONDS LOCK... -- COMMAND...: run COMMAND while every LOCK is held, which may be had by any user.
# Each lock is waited for that long, else 75. The file is only ever opened for reading: in a sticky directory a
# kernel may forbid to open somebody else's for writing.
wait=$1
shift
held() {
  if [ "$1" = -- ]; then
    shift
    "$@"
    return
  fi
  [ -e "$1" ] || (umask 0; : >>"$1") 2>/dev/null
  lock=$1
  shift
  (
    [ -r "$lock" ] || { echo "$lock: can't be opened" >&2; exit 75; }
    exec 9<"$lock"
    flock -w "$wait" 9 || { echo "$lock: another run holds it for $wait s already" >&2; exit 75; }
    held "$@"
  )
}
held "$@"
