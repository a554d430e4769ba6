# The set-up that the scripts beside this file share. Source it; it defines
#
#   root             the repository, also the current directory from here on
#   venv             where the scripts install: .venv, or $CALIBRANT_VENV
#   set_up DIR SET…  make the virtual environment DIR hold what requirements/SET.txt pins,
#                    and this package, and put its programs first on PATH; with several SETs
#                    the first is installed unless one of the others is there already
#   say, die         one line to standard error; die also stops
#
# Settings: CALIBRANT_PYTHON, the Python to use (3.11 or newer; otherwise python3, python3.13,
# python3.12, python3.11 in that order) and CALIBRANT_VENV. A directory named there belongs to
# the scripts: they remove whatever else it holds.
#
# Everything installed is pinned, hashed and a wheel, but for PySpark, of which there is no wheel:
# it is built here from what its hash says. The package itself is built offline.
# When nothing has changed since the last set-up, nothing is fetched and nothing is written.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
cd "$root" || exit 1

say() { printf 'calibrant: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

absolute() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$root/$1" ;;
    esac
}

venv=$(absolute "${CALIBRANT_VENV:-.venv}")

# Where Python keeps nothing that it compiles, every process would compile all its libraries and all
# tests anew: 4 seconds instead of 1.5 for a command, a minute for pytest to begin. So what it compiles
# is kept apart from the sources.
if [ -n "${PYTHONDONTWRITEBYTECODE:-}" ]; then
    unset PYTHONDONTWRITEBYTECODE
    PYTHONPYCACHEPREFIX=$root/.venv-compiled
    export PYTHONPYCACHEPREFIX
fi

set_up() {
    directory=$1
    shift
    find_python
    if ! is_current "$@"; then
        find_cache
        make_environment
        install "$1"
    fi
    PATH=$directory/bin:$PATH
    export PATH
}

# Sets `python` to the path of an interpreter outside any virtual environment (the active one
# may be the very one to be replaced) and `tag` to its kind, such as cpython-311.
find_python() {
    [ -z "${python:-}" ] || return 0
    if [ -n "${CALIBRANT_PYTHON:-}" ]; then
        set -- "$CALIBRANT_PYTHON"
    else
        set -- python3 python3.13 python3.12 python3.11
    fi
    for candidate in "$@"; do
        if python=$("$candidate" -c "$describe_python" 2>/dev/null); then
            tag=${python%% *}
            python=${python#* }
            return 0
        fi
    done
    found=$("$1" --version 2>&1) || found="no working $1"
    die "Python must be 3.11 or newer, got $found; install one or set CALIBRANT_PYTHON to it"
}

describe_python='
import sys
if sys.version_info < (3, 11):
    sys.exit(1)
print(sys.implementation.cache_tag, getattr(sys, "_base_executable", sys.executable))
'

has_uv() { uv --version >/dev/null 2>&1; }

# What an environment depends on, as one line: where it is, its Python, its pins, our metadata.
stamp() {
    {
        printf '%s\n' "$root" "$directory" "$tag" "$1"
        cat "requirements/$1.txt" pyproject.toml src/calibrant/_version.py
    } | cksum
}

is_current() {
    [ -x "$directory/bin/python" ] && [ -f "$directory/calibrant.stamp" ] || return 1
    for name in "$@"; do
        [ "$(cat "$directory/calibrant.stamp")" != "$(stamp "$name")" ] || return 0
    done
    return 1
}

# A home that cannot be written to is no place for downloads.
find_cache() {
    cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}
    if ! mkdir -p "$cache" 2>/dev/null || ! [ -w "$cache" ]; then
        XDG_CACHE_HOME=$root/.venv-cache
        export XDG_CACHE_HOME
    fi
}

# An environment that was moved here, is of another Python, or was made by uv (and so has no
# pip) where there is no uv now, is made anew; any other is brought up to date in place.
is_usable() {
    its_python=$("$directory/bin/python" -c "$describe_python" 2>/dev/null) &&
        [ "${its_python%% *}" = "$tag" ] &&
        grep -qF "$directory" "$directory/bin/activate" &&
        { has_uv || "$directory/bin/python" -m pip --version >/dev/null 2>&1; }
}

make_environment() {
    rm -f "$directory/calibrant.stamp"
    if is_usable; then return 0; fi
    if [ -e "$directory" ] && ! [ -f "$directory/pyvenv.cfg" ] && ! rmdir "$directory" 2>/dev/null; then
        die "$directory must be a virtual environment or absent; remove it or set CALIBRANT_VENV"
    fi
    say "making $directory with $python"
    rm -rf "$directory"
    if has_uv; then
        uv venv --quiet --no-project --python "$python" "$directory"
    else
        "$python" -m venv "$directory"
    fi || die "no virtual environment could be made; Debian and Ubuntu need python3-venv for it"
}

install() {
    say "installing requirements/$1.txt"
    builder=
    # PySpark is built without anything fetched meanwhile: what builds it comes first, by its pin.
    if grep -q '^pyspark==' "requirements/$1.txt"; then
        builder=$directory/builder.txt
        sed -n '/^setuptools==/,/[^\\]$/p' "requirements/$1.txt" >"$builder"
    fi
    if has_uv; then
        { [ -z "$builder" ] || with_uv install --require-hashes --only-binary :all: -r "$builder"; } &&
            with_uv sync --require-hashes --only-binary :all: \
                ${builder:+--no-binary pyspark --no-build-isolation} "requirements/$1.txt" &&
            with_uv install --offline --no-deps --no-build-isolation --editable .
    else
        # The pins are complete. Older pips would still look for the newest coverage[toml], whose
        # version and hash no file names, as soon as one is newer than the pin of coverage.
        { [ -z "$builder" ] || with_pip --require-hashes --only-binary :all: -r "$builder"; } &&
            with_pip --require-hashes --no-deps --only-binary :all: \
                ${builder:+--no-binary pyspark --no-build-isolation} \
                --requirement "requirements/$1.txt" &&
            with_pip --no-index --no-deps --no-build-isolation --editable .
    fi || die "the installation failed; the lines above say why"
    stamp "$1" >"$directory/calibrant.stamp"
}

with_uv() {
    action=$1
    shift
    # On a terminal uv shows how far it is.
    quiet=--quiet
    [ ! -t 2 ] || quiet=
    uv pip "$action" $quiet --python "$directory/bin/python" "$@"
}

# What pip says is kept, and shown if it fails; meanwhile packages are counted as they come.
with_pip() {
    log=$directory/install.log
    {
        PYTHONUNBUFFERED=1 "$directory/bin/python" -m pip install --disable-pip-version-check \
            --progress-bar off --no-compile "$@" 2>&1 || printf 'failed %s\n' "$?"
    } | counted
}

counted() {
    count=0 status=0
    : >"$log"
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        case $line in
        'Collecting '*)
            count=$((count + 1))
            [ $((count % 10)) -ne 0 ] || say "$count packages fetched"
            ;;
        'Installing collected packages: '*,*) say "$count packages fetched; putting them in place" ;;
        'failed '*) status=${line#failed } ;;
        esac
    done
    [ "$status" -eq 0 ] || grep -Ev '^(WARNING|failed )' "$log" | tail -n 30 >&2
    return "$status"
}
