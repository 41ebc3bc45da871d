# The virtual environment that the scripts beside this file run in. Sourced by them, not run.
#
# A script sets `hf_root`, sources this file, and calls `hf_env EXTRA` (none, chat,local, test or dev).
# Afterwards `hf_py` is a Python that has holdfast and the extra. When all is in place
# already, that costs one start of Python; otherwise each step says one line on stderr.
#
#   HOLDFAST_VENV   where the environment is; .venv in the project when not set
#   PYTHON          the interpreter to make it with; else the first new enough one on PATH
#
# What goes wrong is told in one sentence, and the exit status says which kind it was:
#
#   64   the script was called with arguments it does not know
#   70   there is no Python 3.11 or newer
#   71   the environment could not be made, for example because the venv module is missing
#   72   installing failed, for example because the package index cannot be reached
#   73   a folder cannot be written to
#   74   another run held the environment for too long
#   75   the folder exists and is not an environment that this script may change
#   76   what the fault programme needs is missing, and cannot be installed here
#
# Files inside the environment:
#
#   .holdfast-made          we made it, so we may remove it; holds the version of its Python
#   .holdfast-stamp-EXTRA   the extra is installed completely; holds a fingerprint. Written
#                           last and removed first: no stamp means a run was cut off half-way
#   .holdfast-use-PID       a run uses the environment; whoever wants to change it waits
#
# The lock is the folder VENV.lock, made with mkdir because that is atomic everywhere.

hf_wait_max_s=900

# The caller's Python settings would leak into the environment, and without compiled
# bytecode every start would be slow.
unset PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV

hf_say() {
    printf 'holdfast: %s\n' "$*" >&2
}

hf_die() {
    hf_status=$1
    shift
    hf_say "$*"
    exit "$hf_status"
}

hf_die_unwritable() {
    hf_die 73 "cannot write in $1: make it writable, or set HOLDFAST_VENV to another folder"
}

# ---- cleaning up ----

hf_tmp=
hf_child=
hf_locked=
hf_use=

hf_on_exit() {
    for hf_each in $hf_child; do
        # Neither it nor what it started may write once the lock is gone.
        kill -s INT -- "-$hf_each" 2>/dev/null || kill "$hf_each" 2>/dev/null || :
    done
    for hf_each in $hf_child; do
        wait "$hf_each" 2>/dev/null || :
        kill -s KILL -- "-$hf_each" 2>/dev/null || :
    done
    if [ -n "$hf_locked" ]; then rm -rf "$hf_lock"; fi
    if [ -n "$hf_use" ]; then rm -f "$hf_use" 2>/dev/null || :; fi
    if [ -n "$hf_tmp" ]; then rm -rf "$hf_tmp"; fi
}
trap hf_on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# A folder for this run alone, removed at its end.
hf_make_tmp() {
    [ -z "$hf_tmp" ] || return 0
    hf_tmp=$(mktemp -d 2>/dev/null) ||
        hf_die 73 "cannot make a temporary folder: set TMPDIR to a folder you can write to"
}

# ---- processes ----

# When process $1 started. Process numbers are used again; number and start together are not.
hf_birth() {
    if [ -r "/proc/$1/stat" ]; then
        sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
    else
        ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ' '_'
    fi
}

# $1 $2 $3: number, start and machine, as an owner wrote them down.
hf_alive() {
    [ "${3:-}" = "$(uname -n)" ] || return 0    # another machine's process: we cannot know
    [ "$(hf_birth "$1")" = "${2:-}" ] || return 1
    kill -0 "$1" 2>/dev/null || [ -d "/proc/$1" ]
}

hf_myself() {
    printf '%s %s %s\n' "$1" "$(hf_birth "$1")" "$(uname -n)"
}

# ---- the lock ----

hf_lock_take() {
    hf_waited=0
    hf_missing=0
    while ! mkdir "$hf_lock" 2>/dev/null; do
        mkdir -p "${hf_lock%/*}" 2>/dev/null || hf_die_unwritable "${hf_lock%/*}"
        # Not there, and it cannot be made: the other run has just finished, or the disk is
        # full or write-protected. Only the second lasts.
        if [ ! -d "$hf_lock" ]; then
            hf_missing=$((hf_missing + 1))
            [ "$hf_missing" -lt 100 ] || hf_die_unwritable "${hf_lock%/*}"
            continue
        fi
        if hf_lock_break; then continue; fi
        hf_wait "$(cat "$hf_lock/owner" 2>/dev/null || :)" "is preparing"
    done
    hf_locked=yes
    hf_myself $$ >"$hf_lock/owner"
}

# Remove the lock if those who held it are dead. Only one run at a time may look and remove,
# or a slow one would remove the lock that a quick one has just taken.
hf_lock_break() {
    if [ ! -s "$hf_lock/owner" ] && [ "$hf_waited" -lt 5 ]; then return 1; fi
    mkdir "$hf_lock/break" 2>/dev/null || return 1
    # The installer outlives a shell that was killed, and goes on writing.
    for hf_file in "$hf_lock/owner" "$hf_lock/child"; do
        # shellcheck disable=SC2046 # three words
        if [ -s "$hf_file" ] && hf_alive $(cat "$hf_file"); then
            rmdir "$hf_lock/break" 2>/dev/null || :
            return 1
        fi
    done
    rm -rf "$hf_lock"
}

hf_lock_drop() {
    rm -rf "$hf_lock"
    hf_locked=
}

# One second, and one line when the waiting starts. $1 begins with the other's number.
hf_wait() {
    if [ "$hf_waited" -eq 0 ]; then
        hf_say "waiting for another run${1:+ (process ${1%% *})}, which $2 $hf_shown"
    fi
    [ "$hf_waited" -lt "$hf_wait_max_s" ] ||
        hf_die 74 "another run${1:+ (process ${1%% *})} still $2 $hf_shown: end it, or set HOLDFAST_VENV to another folder, or remove $hf_lock if no other run is going on"
    hf_waited=$((hf_waited + 1))
    sleep 1
}

# ---- who uses it ----

# Wait until no other run uses the environment. A run started by another one, as check
# starts test, does not wait for its parent: that would last for ever.
hf_users_wait() {
    hf_waited=0
    for hf_file in "$hf_venv"/.holdfast-use-*; do
        case $hf_file in *"-*" | *"-${HOLDFAST_PARENT:-none}") continue ;; esac
        # shellcheck disable=SC2046 # three words
        while [ -s "$hf_file" ] && hf_alive $(cat "$hf_file" 2>/dev/null); do
            hf_wait "${hf_file##*-}" "uses"
        done
        rm -f "$hf_file"
    done
}

# A script that ends in exec cannot remove its own note, so each run removes those of the dead.
hf_users_sweep() {
    for hf_file in "$hf_venv"/.holdfast-use-*; do
        # shellcheck disable=SC2046 # three words
        if [ -s "$hf_file" ] && ! hf_alive $(cat "$hf_file" 2>/dev/null); then
            rm -f "$hf_file" 2>/dev/null || :    # an environment may be read-only
        fi
    done
}

# ---- the interpreter ----

hf_version() {
    "$1" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11) or print(sys.version.replace("\n", " ")))' 2>/dev/null
}

# Sets hf_base, the interpreter to make an environment with.
hf_find_python() {
    if [ -n "${PYTHON:-}" ]; then
        hf_version "$PYTHON" >/dev/null ||
            hf_die 70 "PYTHON is $PYTHON, which does not run or is older than 3.11: set it to a newer one, or unset it"
        hf_base=$PYTHON
        return
    fi
    for hf_base in python3 python3.14 python3.13 python3.12 python3.11; do
        if hf_version "$hf_base" >/dev/null; then return; fi
    done
    hf_die 70 "no Python 3.11 or newer was found on PATH: install one, or set PYTHON to where it is"
}

# ---- making and installing ----

# Run the Python $1 with the other arguments, in the project's folder, with its output in the
# log. In the background, because a shell that waits for a command in the foreground does not
# notice a signal until that command is done; in a process group of its own, so that pip's and
# venv's helpers end with it; and with SIGINT back, which the shell takes from what it starts
# in the background, because on that pip cleans up.
hf_quietly() {
    "$1" -I -S -c '
import os, signal, sys
os.setsid()
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.chdir(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])' "$hf_root" "$@" >>"$hf_log" 2>&1 </dev/null &
    hf_child=$!
    if [ -n "$hf_locked" ]; then hf_myself "$hf_child" >"$hf_lock/child"; fi
    hf_result=0
    wait "$hf_child" || hf_result=$?
    hf_child=
    return "$hf_result"
}

# Make an environment in the folder $1 with the interpreter hf_base.
hf_venv_make() {
    hf_log=$1/install.log
    "$hf_base" -I -c 'import venv; from ensurepip import bootstrap' 2>/dev/null ||
        hf_die 71 "$hf_base has no venv module: install it (on Debian: apt-get install python3-venv), or set PYTHON to another interpreter"
    mkdir -p "$1" 2>/dev/null && hf_version "$hf_base" 2>/dev/null >"$1/.holdfast-made" || hf_die_unwritable "$1"
    printf '*\n' >"$1/.gitignore"
    hf_quietly "$hf_base" -I -m venv "$1" ||
        hf_die 71 "$hf_base could not make a virtual environment in $1 ($(hf_last_line)): correct that and start again; the full log is $hf_log"
}

# Let pip install the other arguments into the environment $1. The project is ".", because
# pip takes a path with brackets for something else.
hf_pip() {
    hf_into=$1
    hf_log=$1/install.log
    shift
    hf_quietly "$hf_into/bin/python" -I -m pip install --disable-pip-version-check --no-input --no-user "$@" ||
        hf_die 72 "$(hf_pip_why); the full log is $hf_log"
}

# An index that cannot be reached looks to pip like one that has no versions of anything.
hf_pip_why() {
    hf_why=$(hf_log_plain | grep -E 'from versions: none|Could not fetch URL|NewConnectionError|ConnectTimeout|ReadTimeout|NameResolutionError|ProxyError|SSLError|[Cc]onnection (broken|aborted|refused|reset)' |
        head -n 1 | sed -e "s/.*object at 0x[0-9a-f]*>: //" -e "s/['\")]*: \/[^ ]*$//" | cut -c 1-300)
    if [ -n "$hf_why" ]; then
        echo "the package index cannot be reached ($hf_why): check the network, or set PIP_INDEX_URL to an index you can reach"
    else
        echo "installing failed ($(hf_last_line)): correct that and start again"
    fi
}

# The log without pip's colours and frames.
hf_log_plain() {
    tr -d '\033' <"$hf_log" | sed -e 's/\[[0-9;]*m//g' -e 's/^[ │╰─>×]*//'
}

# The last line of the log that says what is wrong.
hf_last_line() {
    {
        hf_log_plain | grep -E '^(ERROR|[A-Za-z.]*Error):' ||
            hf_log_plain | grep . || echo "it said nothing; the disk may be full"
    } | tail -n 1 | cut -c 1-300
}

# ---- the environment ----

# What the environment is made from. The paths are part of it, because an environment that
# was moved, or whose project was, points to the old place.
hf_fingerprint() {
    "$hf_py" -I -S -c '
import hashlib, sys
with open(sys.argv[1] + "/pyproject.toml", "rb") as file:
    digest = hashlib.sha256(file.read())
digest.update("\0".join([sys.version, *sys.argv[1:]]).encode("utf-8", "surrogateescape"))
print(digest.hexdigest())' "$hf_root" "$hf_venv" 2>/dev/null
}

hf_is_ready() {
    hf_stamp=$hf_venv/.holdfast-stamp-$1
    [ -s "$hf_stamp" ] && [ "$(cat "$hf_stamp")" = "$(hf_fingerprint)" ] && hf_is_wanted_python
}

# Without PYTHON any environment will do, so the search on PATH is not repeated.
hf_is_wanted_python() {
    [ -z "${PYTHON:-}" ] || [ "$(hf_version "$PYTHON")" = "$(hf_version "$hf_py")" ]
}

hf_is_whole() {
    ls "$hf_venv"/.holdfast-stamp-* >/dev/null 2>&1 &&
        [ "$(hf_version "$hf_py")" = "$(cat "$hf_venv/.holdfast-made")" ] &&
        hf_is_wanted_python
}

# After this there is an environment with pip in it, or the script has ended.
hf_venv_ensure() {
    if [ -e "$hf_venv/.holdfast-made" ]; then
        if hf_is_whole; then return; fi
        hf_find_python
        hf_say "removing $hf_shown, which is incomplete or made with another Python"
        # Moved into the lock first: if we are killed while removing, nobody meets the rest.
        mv "$hf_venv" "$hf_lock/old" 2>/dev/null || rm -rf "$hf_venv" 2>/dev/null ||
            hf_die_unwritable "$hf_venv"
        rm -rf "$hf_lock/old"
    elif [ -n "$(ls -A "$hf_venv" 2>/dev/null)" ]; then
        # Someone else's: it may be used, but not removed.
        if hf_version "$hf_py" >/dev/null && hf_is_wanted_python &&
            "$hf_py" -I -c 'import pip, sys; sys.exit(sys.prefix == sys.base_prefix)' 2>/dev/null; then
            return
        fi
        hf_die 75 "$hf_venv exists and is not a virtual environment with pip and the Python wanted: remove it, or set HOLDFAST_VENV to another folder"
    else
        hf_find_python
    fi
    hf_say "making a virtual environment in $hf_shown"
    hf_venv_make "$hf_venv"
}

hf_install() {
    hf_extra=$1
    case $hf_extra in none) hf_what= ;; *) hf_what="[$hf_extra]" ;; esac
    rm -f "$hf_venv"/.holdfast-stamp-*
    hf_say "installing holdfast$hf_what and what it needs"
    hf_pip "$hf_venv" -e ".$hf_what"
    # A larger extra holds the smaller ones.
    case $hf_extra in
    dev) hf_done="none chat,local test dev" ;;
    test) hf_done="none chat,local test" ;;
    chat,local) hf_done="none chat,local" ;;
    *) hf_done=none ;;
    esac
    hf_print=$(hf_fingerprint)
    for hf_extra in $hf_done; do
        printf '%s\n' "$hf_print" >"$hf_venv/.holdfast-stamp-$hf_extra"
    done
    rm -f "$hf_venv/install.log"
    hf_say "done"
}

# Sets hf_venv and what follows from it.
hf_place() {
    hf_venv=${HOLDFAST_VENV:-$hf_root/.venv}
    while [ "${hf_venv%/}" != "$hf_venv" ]; do hf_venv=${hf_venv%/}; done
    case $hf_venv in /*) ;; *) hf_venv=$PWD/$hf_venv ;; esac
    hf_shown=$hf_venv
    if [ "$hf_venv" = "$hf_root/.venv" ]; then hf_shown=.venv; fi
    hf_py=$hf_venv/bin/python
    hf_lock=$hf_venv.lock
}

hf_env() {
    hf_place
    # Note the use first and look at the lock second. Who changes the environment does it
    # the other way round, so one of the two always sees the other.
    hf_users_sweep
    while :; do
        if [ ! -d "$hf_lock" ] && [ -s "$hf_venv/.holdfast-stamp-$1" ] &&
            hf_myself $$ 2>/dev/null >"$hf_venv/.holdfast-use-$$"; then
            hf_use=$hf_venv/.holdfast-use-$$
        fi
        if [ ! -d "$hf_lock" ] && hf_is_ready "$1"; then break; fi
        rm -f "$hf_venv/.holdfast-use-$$" 2>/dev/null || :
        hf_use=
        hf_lock_take
        if ! hf_is_ready "$1"; then
            hf_users_wait
            hf_venv_ensure
            hf_install "$1"
        fi
        hf_lock_drop
    done
}
