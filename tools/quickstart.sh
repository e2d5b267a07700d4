#!/usr/bin/env bash
# The main job: sets up, builds, and trains a language model by compiled code, on this repository's own sources unless
# --text FILE says otherwise. Arguments go to `lathe train`; see `lathe train --help`. With --from DIR as the first of
# them training starts from the weights of a Hugging Face directory, and the others go to `lathe finetune`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bash "$root/tools/setup.sh"
build="$root/build"
if ! cmake -S "$root" -B "$build" -G Ninja -DLATHE_UNITY=ON -DLATHE_TESTS=OFF -DLATHE_EXAMPLES=OFF >"$root/build-log.txt" 2>&1; then
  cat "$root/build-log.txt" >&2
  exit 1
fi
rm -f "$root/build-log.txt"
ninja -C "$build"  # all that `cmake --install` needs, too
if [ "${1:-}" != --from ]; then
  exec "$build/tools/lathe" train --sources "$root" "$@"
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
