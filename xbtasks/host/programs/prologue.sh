# The prologue of every step's script. M is its marker, A is 1 where a payload comes behind the script.
# fd 3 is the link: a child never gets it.
export LC_ALL=C
umask 077
exec 3<&0 </dev/null
T='' P='' W='' N=0

# A payload comes in chunks, each led by its length, the last of length 0. dd takes a chunk whole even when
# nobody reads it any more, so that what follows on the link is the next step.
take() { dd bs="$1" count=1 iflag=fullblock; }
pump() {
  while IFS= read -r length <&3; do
    [ "$length" != 0 ] || return 0
    take "$length" <&3 2>/dev/null
  done
}
# While a step runs nothing else is sent: what ends this read is the end of the link.
watch() { IFS= read -r _ <&3; kill -TERM "$S"; }
abort() {
  [ "$A" = 0 ] || pump >/dev/null
  printf '\n%s abort %s\n' "$M" "$*"
  exit 0
}
quit() {
  trap '' HUP INT PIPE TERM
  if [ -n "$P" ]; then
    kill -TERM "$P" 2>/dev/null
    wait "$P"
    reap
  fi
  if [ -n "$W" ]; then kill -KILL "$W"; fi
  exit 143
}

for tool in base64 date mkfifo mktemp sed sha256sum sleep tee timeout wc; do
  command -v "$tool" >/dev/null 2>&1 || abort tool "$tool"
done
if [ "$A" = 1 ] && [ "$(printf ab | take 2 2>/dev/null)" != ab ]; then
  take() { dd bs=1 count="$1"; }
fi
T=$(mktemp -d "${TMPDIR:-/tmp}/xbtasks.$M.XXXXXXXX") || abort tmp
trap 'rm -rf "$T"' EXIT
trap quit HUP INT PIPE TERM
sh -c 'echo "$PPID"' >"$T/pid"
read -r S <"$T/pid" || abort tmp
: >"$T/headers"
if [ "$A" = 0 ]; then
  watch >/dev/null 2>&1 &
  W=$!
fi

# Seconds of a clock that nobody sets, where the kernel tells them.
now() { if { read -r up _ </proc/uptime; } 2>/dev/null; then printf %s "${up%%.*}"; else date +%s; fi; }
digest() { set -- "$(sha256sum <"$1")" && printf %s "${1%% *}"; }
size() { printf %s "$(($(wc -c <"$1")))"; }
body() { base64 <"$1" | sed "s/^/$M $2 /"; }
# timeout leads a process group of its own and ends with its child; what ignored the signal is left in it.
reap() { kill -KILL "-$P" 2>/dev/null; }
# section NAME DEADLINE LIVE PAYLOAD COMMAND...: waited for in the background, so that a signal to this shell
# reaches it.
section() {
  name=$1 deadline=$2 live=$3 input=/dev/null errors=$T/e L=''
  if [ "$4" = 1 ]; then
    input=$T/in
    mkfifo "$input"
    (
      pump >"$input"
      : >"$T/drained"
      watch
    ) >/dev/null 2>&1 &
    W=$!
  fi
  shift 4
  : >"$T/o"
  : >"$T/e"
  if [ "$live" = 1 ]; then
    errors=$T/live
    rm -f "$errors"
    mkfifo "$errors"
    tee "$T/e" <"$errors" >&2 3<&- &
    L=$!
  fi
  begun=$(now)
  timeout -k 5 "$deadline" "$@" <"$input" >"$T/o" 2>"$errors" 3<&- &
  P=$!
  echo "$P" >"$T/group"
  wait "$P"
  status=$?
  reap
  P=''
  [ -z "$L" ] || wait "$L"
  [ "$input" = /dev/null ] || until [ -e "$T/drained" ]; do sleep 0.1 2>/dev/null || sleep 1; done
  ended=$(now)
  line="$name $status $((ended - begun)) $(size "$T/o") $(digest "$T/o") $(size "$T/e") $(digest "$T/e")"
  printf '%s\n' "$line" >>"$T/headers"
  printf '%s section %s\n' "$M" "$line"
  body "$T/o" o
  body "$T/e" e
  N=$((N + 1))
}
# The last line is printed when nothing of the step is left.
finish() {
  sum=$(digest "$T/headers")
  # TERM may be ignored since before this shell began
  { kill -KILL "$W" && wait "$W"; } 2>/dev/null
  rm -rf "$T"
  printf '\n%s over\n' "$M" >&2
  printf '%s end %s %s\n' "$M" "$N" "$sum"
}
