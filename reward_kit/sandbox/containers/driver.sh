# SPDX-License-Identifier: Apache-2.0
# The first process of a sandbox container: reads requests, runs commands, says how they ended. Needs bash 4.3 or newer.
#
#   request   a line "OP NONCE PASSWORD LENGTH LENGTH .", then that many bytes of command, and of input in base64
#             B  begin: the command is run by this process itself, before the session's shell starts
#             R  run in the session's shell    S  run as a process of its own
#             STOP  have all that runs stand still    CONT  let it go on
#             K  end what runs, and have the shell give up its command    KS  end the shell, too
#   ending    on stdout "NONCE|STATUS|EXITED|CPU|PEAK|OOM|DIRECTORY|NONCE", on stderr "NONCE"
#
# Process 1 cannot be killed from inside its own container. The nonce is in no variable, argument or environment that a
# command can ask for, so nothing a command prints is an ending; the shell reads the password of a status only after the
# command has ended, so nothing it writes to the shell's own descriptors is a status. To end a command takes no fork, so a full process table
# does not stand in the way.

[[ $$ == 1 ]] || exit 97 # what it ends is everything it sees: that must be a container of its own
# Handlers, which commands do not inherit: no signal that a command can send, nor a broken pipe, ends this process.
for number in {1..64}; do
  case $number in 9 | 17 | 18 | 19 | 32 | 33) ;; *) trap : "$number" ;; esac
done
exec 250<&0 0</dev/null 252>&1
nonce='' password='' secret='' watcher='' running='' session='' wrapper='' directory=$PWD

# The session's shell. Lengths and commands come on 250, statuses go to 251, its output is 253 and 254; none of them is
# open in a command, and what a command does to its standard descriptors is undone after it. On signal 62 it gives up the
# command: `continue` leaves the loops the command is in; out of a function there is no way, so there it ends itself.
# Joined to one line, because bash counts the lines of a command from the line of its `eval`.
read -r -d '' session_script <<'SESSION'
__rk_set() { return "$1"; };
__rk_s=0;
shopt -s execfail;
trap '[[ ${__rk_b-} ]] && { [[ ${FUNCNAME-} ]] && kill -KILL $$; continue 99; }' 62;
builtin printf 'p %s\n' "$$" >&251;
while
__rk_b=;
builtin read -r -u 250 __rk_w &&
builtin printf '%s %s\n' "$__rk_w" "$__rk_s" "$__rk_w" "$__rk_s" >&251 &&
IFS=' ' LC_ALL=C builtin read -r -u 250 __rk_l __rk_i &&
IFS= LC_ALL=C builtin read -r -N "$__rk_l" -u 250 __rk_c;
do
__rk_p=$__rk_s;
__rk_s=143;
__rk_d=/dev/null;
((__rk_i)) && { IFS= LC_ALL=C builtin read -r -N "$__rk_i" -u 250 __rk_d; };
((__rk_i)) && exec 249< <(builtin printf %s "$__rk_d" | base64 -d 2>/dev/null 250<&- 251>&- 253>&- 254>&-) || exec 249</dev/null;
__rk_d=;
__rk_b=1;
for __rk_1 in 1; do
__rk_set "$__rk_p";
builtin eval "$__rk_c" <&249 >&253 2>&254 249<&- 250<&- 251>&- 253>&- 254>&-;
done;
__rk_s=$?;
done
SESSION
session_script=${session_script//$'\n'/ }

counters() { # CPU nanoseconds, peak bytes of memory, out-of-memory kills; "-" where the engine does not show them
  local root=/sys/fs/cgroup name value
  cpu=- peak=- oom=0
  if [[ -r $root/cgroup.controllers ]]; then
    while read -r name value; do [[ $name == usage_usec ]] && cpu=${value}000; done <$root/cpu.stat
    read -r peak <$root/memory.peak
    while read -r name value; do [[ $name == oom_kill ]] && oom=$value; done <$root/memory.events
  else
    read -r cpu <$root/cpuacct/cpuacct.usage
    read -r peak <$root/memory/memory.max_usage_in_bytes
    while read -r name value; do [[ $name == oom_kill ]] && oom=$value; done <$root/memory/memory.oom_control
  fi
} 2>/dev/null

ending() { # STATUS EXITED
  counters
  printf '%s' "$nonce" >&2
  printf '%s' "$nonce|$1|$2|${cpu:--}|${peak:--}|$oom|$directory|$nonce"
}

# Memory that runs out is taken back from commands, not from this process.
weaken() { echo 500 >/proc/self/oom_score_adj; } 2>/dev/null

open_session() {
  coproc SESSION {
    weaken
    bash --noprofile --norc -c "$session_script" bash 250<&0 251>&1 253>&252 254>&2 </dev/null >/dev/null 2>&1 252>&-
    set -- "$?"
    printf '%s x %s\n' "$secret" "$1" "$secret" "$1"
  } 250<&-
  wrapper=$SESSION_PID
  exec {to}>&"${SESSION[1]}" {from}<&"${SESSION[0]}"
  read -r -u "$from" _ session
  printf 'ready\n' >&"$to"
  read -r -u "$from" _
}

where() { cd -P "/proc/$session/cwd" && directory=$PWD; } 2>/dev/null

# Statuses are said twice, because who listens may be killed while it reads the first. A line without the password is an
# earlier command's, or written by a command that found the way to the shell's descriptors.
watch_session() {
  local line status=0
  until ((status && status <= 128)); do # above that, a signal came between
    read -r -u "$from" line
    status=$?
    ((status)) && continue
    case $line in
      "$secret x "*) ending "${line##* }" 1 && return ;;
      "$password "*) where || : && ending "${line##* }" 0 && return ;;
    esac
  done
  kill -9 "$session" 2>/dev/null # it cannot be heard any more
  ending 137 1
}

run_standalone() {
  local status
  weaken
  where || cd -- "$directory" 2>/dev/null || cd /
  exec 252>&2 2>/dev/null # what this process itself would say of a killed command is not the command's output
  if ((length > 100000)); then # does not fit into an argument
    exec 248< <(printf %s "$command")
    command='. /dev/fd/248'
  fi
  if [[ $data ]]; then
    exec 249< <(printf %s "$data" | base64 -d)
    bash --noprofile --norc -c "$command" bash <&249 2>&252 249<&- 250<&- 252>&- {to}>&- {from}<&-
  else
    bash --noprofile --norc -c "$command" bash </dev/null 2>&252 250<&- 252>&- {to}>&- {from}<&-
  fi
  status=$?
  exec 2>&252
  ending "$status" 0
}

end_command() { # all but this process, the one that will say the ending, and the shell unless it is meant too
  local each
  [[ $running == R ]] && kill -62 "$session" # first, so that it does not go on with the command's next part
  for each in /proc/[0-9]*; do
    each=${each#/proc/}
    case $each in
      1 | "$$" | "$watcher") ;;
      "$session" | "$wrapper") [[ $op == KS ]] && kill -9 "$each" ;;
      *) kill -9 "$each" ;;
    esac
  done
} 2>/dev/null

signal_all() { # all but this process, which is what can be waited for
  local each
  for each in /proc/[0-9]*; do
    each=${each#/proc/}
    [[ $each == 1 || $each == "$$" ]] || kill "-$1" "$each"
  done
} 2>/dev/null

watcher_is_gone() { # it was killed before it said the ending: watch on, or say it here
  [[ $watcher ]] || return
  kill -0 "$watcher" 2>/dev/null && return
  wait "$watcher" 2>/dev/null
  local status=$?
  watcher=''
  ((status)) || return
  if [[ $running == R ]] && kill -0 "$session" 2>/dev/null; then
    watch_session &
    watcher=$!
    return
  fi
  op=K
  end_command # what is left of a command that has lost its parent
  if kill -0 "$session" 2>/dev/null; then ending 137 0; else ending 137 1; fi
}

next_request() { # while something runs, look now and then whether it is still watched
  local part status
  header=''
  while :; do
    IFS= LC_ALL=C read -r ${watcher:+-t 0.2} -u 250 part
    status=$?
    header+=$part
    [[ $status == 0 || $header == *' .' ]] && break # its time may be up just as the line has been read
    ((status > 128)) || exit 0 # whoever asked is gone, and the container with it
    watcher_is_gone
  done
  IFS=' ' read -r op id password length input <<<"${header% .}"
}

while next_request; do
  if [[ $op == K* ]]; then
    end_command
    continue
  fi
  command='' data=''
  ((length)) && IFS= LC_ALL=C read -r -N "$length" -u 250 command
  ((input)) && IFS= LC_ALL=C read -r -N "$input" -u 250 data
  [[ $watcher ]] && wait "$watcher" 2>/dev/null
  nonce=$id watcher='' running=$op
  [[ $session ]] && where
  case $op in
    B)
      eval "$command"
      status=$?
      directory=$PWD secret=$password
      open_session
      ending "$status" 0
      ;;
    R)
      watch_session &
      watcher=$!
      printf '%s %s\n%s%s%s\n' "$length" "$input" "$command" "$data" "$password" 2>/dev/null >&"$to"
      ;;
    S)
      run_standalone &
      watcher=$!
      ;;
    STOP | CONT)
      signal_all "$op"
      ending 0 0
      ;;
  esac
done
