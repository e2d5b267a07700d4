#!/usr/bin/env bash
# Installs dependencies, builds Lathe and trains a language model, by default on the sources of this repository; use
# --text FILE for another text. Arguments are passed to `lathe train`; see `lathe train --help`. If the first argument
# is --from DIR, training starts from the weights of a Hugging Face directory, and the other arguments are passed to
# `lathe finetune`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bash "$root/tools/setup.sh"
build="$root/build"
if ! cmake -S "$root" -B "$build" -G Ninja -DLATHE_UNITY=ON -DLATHE_TESTS=OFF -DLATHE_EXAMPLES=OFF >"$root/build-log.txt" 2>&1; then
  cat "$root/build-log.txt" >&2
  exit 1
fi
rm -f "$root/build-log.txt"
ninja -C "$build" lathe
if [ "${1:-}" != --from ]; then
  case " $* " in
    *' --text'*|*' --sources'*) ;;
    *) set -- --sources "$root" "$@" ;;
  esac
  exec "$build/tools/lathe" train "$@"
fi
model=${2:?--from needs the directory of a model}
shift 2
case " $* " in
  *' --data'*|*' --text'*|*' --sources'*) ;;
  *) set -- --sources "$root" "$@" ;;
esac
case " $* " in
  *' -o'*|*' --output'*) ;;
  *) set -- -o lathe-run "$@" ;;
esac
exec "$build/tools/lathe" finetune "$model" "$@"
