#!/bin/sh
# setup_venv.sh DIR: make a virtual environment with the locked dependencies and the project itself.
# It uses uv. If uv is missing, it installs uv from the package index, or uses pip if that fails.
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
# Spark starts several Pythons for a query. Where Python may not write bytecode, each would compile the modules again.
"$venv/bin/python" -m compileall -q headrace
# With this, applications start in two thirds of the time. They also run without it.
"$venv/bin/python" -m headrace dev classes || echo "Spark's classes could not be written to a file. Applications run, but start more slowly" >&2
