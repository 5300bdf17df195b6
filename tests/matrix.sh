#!/bin/sh
# Run the tests with several versions of Python and of the dependencies; `make test-matrix` calls it.
#
#   matrix.sh FOLDER "3.11-oldest 3.13-newest" [arguments of pytest]
#
# Each version has an environment of its own in FOLDER, which is kept for the next run. Pyro is left out: torch is large,
# and `make test` has it. A Python that is not installed is named and passed over; where none is, nothing was tested, and
# the command fails.
set -eu
folder=$1
corners=$2
shift 2
uv="${BIN:-.venv/bin}/uv"
export UV_PYTHON_DOWNLOADS=never
unset PYTHONPATH || true
ran=0
failed=""

# Print the interpreter of a version: of the name pythonX.Y, or one of pyenv's, whose pythonX.Y may be for another version.
interpreter() {
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c "" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
}

for corner in $corners; do
    python=${corner%-*}
    case $corner in
        *-oldest) versions="--resolution lowest-direct" ;;
        *-newest) versions="--resolution highest" ;;
        *-pinned) versions="--constraint constraints.txt" ;;
        *) echo "$corner: a version and -oldest, -newest or -pinned are needed, such as 3.11-oldest" >&2; exit 2 ;;
    esac
    where=$folder/$corner
    found=$(interpreter "$python")
    if [ -z "$found" ]; then
        echo "== $corner: not tested, since Python $python is not installed"
        continue
    fi
    if [ ! -x "$where/bin/python" ]; then
        "$uv" venv --quiet --no-project --python "$found" "$where"
    fi
    echo "== $corner"
    "$uv" pip install --quiet --python "$where/bin/python" $versions -e ".[test]"
    "$uv" pip list --quiet --python "$where/bin/python" 2>/dev/null |
        grep -E "^(arviz|flax|jax|numpy|numpyro|pandas|xarray) " || true
    ran=$((ran + 1))
    "$where/bin/python" -m pytest -n "${JOBS:-2}" --dist loadfile --max-worker-restart 0 "$@" || failed="$failed $corner"
done
if [ "$ran" = 0 ]; then
    echo "none of $corners could be tested" >&2
    exit 1
fi
if [ -n "$failed" ]; then
    echo "failed with:$failed" >&2
    exit 1
fi
echo "passed with each of the $ran that could be tested"
