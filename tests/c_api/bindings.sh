#!/usr/bin/env bash
# Runs the example in C and the example in Python, which must print the same lines, and passes arrays of NumPy by DLPack.
#   bindings.sh FOLDER PROGRAM LIBRARY SANITIZER
set -euo pipefail
folder=$1 program=$2 library=$3 sanitizer=$4
expected=$("$program" "$folder/curve.lathe")
echo "$expected"
[ "$(wc -l <<<"$expected")" = 7 ] || { echo "the program printed other lines" >&2; exit 1; }
if [ -n "$sanitizer" ]; then
  echo "SKIP: Python cannot load a library with the $sanitizer sanitizer"
elif ! python3 -c 'import numpy' 2>/dev/null; then
  echo "SKIP: no python3 with numpy"
else
  diff <(echo "$expected") <(python3 "$folder/train.py" "$library" "$folder/curve.lathe") ||
    { echo "Python printed other lines" >&2; exit 1; }
  python3 "$(dirname "$0")/dlpack.py" "$library"
fi
