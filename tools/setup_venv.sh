#!/bin/sh
# setup_venv.sh DIR: a virtual environment with the locked dependencies and the project itself.
# Uses uv; gets it from PyPI when it is missing; goes on with pip when it cannot be had.
set -eu
venv=$1
python=${PYTHON:-python3}

if uv --version >/dev/null 2>&1; then
    uv=uv
    uv venv --quiet --allow-existing --python "${PYTHON:->=3.11}" "$venv"
else
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "Headrace needs Python 3.11 or later; $python is $("$python" --version). Name another one with PYTHON=..." >&2
        exit 1
    }
    "$python" -m venv "$venv"
    uv=$venv/bin/uv
    "$venv/bin/python" -m pip install --quiet uv || uv=
fi

install() {
    if [ -n "$uv" ]; then
        "$uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" "$@"
    else
        "$venv/bin/python" -m pip install --quiet "$@"
    fi
}
install --require-hashes -r requirements.txt
install --no-deps --no-build-isolation -e .
# Spark starts several Pythons for a query, and each would compile the modules again where writing them is switched off.
"$venv/bin/python" -m compileall -q headrace
# Applications start in two thirds of the time with this; without it they run as well.
"$venv/bin/python" -m headrace dev classes || echo "Spark's classes could not be kept in a file: every start reads them anew" >&2
