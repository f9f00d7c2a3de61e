#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the Python file of the same name.
p=${TARE_PYTHON:-python3}
[ -x "$p" ] || p=python3
PYTHONPATH=$(dirname "$0")/../agent exec "$p" -B "${0%.sh}.py"
