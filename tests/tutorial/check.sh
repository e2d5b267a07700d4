#!/usr/bin/env bash
# Checks that a lesson matches its program: every block of C++ on the page must be in the program, ignoring
# indentation, and the program must print every block of text.
#   check.sh PAGE SOURCE PROGRAM
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
page=$1 source=$(sed 's/^ *//' "$2")$'\n' output=$(cd "$scratch" && "$3")$'\n'
printf '%s\n' "$output"
kind="" block="" blocks=0
while IFS= read -r line; do
  case "$kind:$line" in
    ':```cpp') kind=source block="" ;;
    ':```text') kind=output block="" ;;
    'source:```' | 'output:```')
      if [[ ${!kind} != *"$block"* ]]; then
        printf '%s: this is no part of the %s of %s:\n%s\n' "$page" "$kind" "$3" "$block" >&2
        exit 1
      fi
      kind="" blocks=$((blocks + 1)) ;;
    source:*) block+=$(sed 's/^ *//' <<<"$line")$'\n' ;;
    output:*) block+=$line$'\n' ;;
  esac
done <"$page"
[ "$blocks" -ge 3 ] || { echo "$page has $blocks blocks" >&2; exit 1; }
