#!/usr/bin/env bash
# Everything that wants a GPU, in one run: correctness first, then times beside PyTorch.
#   tests/gpu/run.sh [--programs FOLDER] [--out FOLDER] [--seconds N]
# FOLDER of --programs holds test_gpu and gpu_measure (default: .gpu, which tests/gpu/pack.sh fills for a machine that
# cannot build, else build/tests/gpu). Each part has a time limit of its own and none stops the others; --seconds (570)
# bounds them all. Results: OUT/results.json, OUT/table.md, OUT/*.log. Without a GPU: SKIP, exit 0.
set -uo pipefail
cd "$(dirname "$0")/../.."
programs= out=${OUT:-build/gpu-results} total=570
while [ $# -gt 0 ]; do
  case $1 in
    --programs) programs=$2 ;;
    --out) out=$2 ;;
    --seconds) total=$2 ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$programs" ] || for programs in .gpu build/tests/gpu; do [ -e "$programs/test_gpu" ] || [ -e "$programs/test_gpu.xz" ] && break; done
begin=$SECONDS
mkdir -p "$out"; rm -f "$out"/*.log "$out"/*.jsonl
left() { echo $((total - SECONDS + begin)); }

# What pack.sh made lies compressed, with its libraries; NVRTC may lie in a Python package.
if ls "$programs"/*.xz > /dev/null 2>&1; then
  unpacked=$(mktemp -d); trap 'rm -rf "$unpacked"' EXIT
  unpack() { xz -dc "$1" 2> /dev/null || python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1"; }
  for file in "$programs"/*.xz; do unpack "$file" > "$unpacked/$(basename "$file" .xz)"; done
  chmod +x "$unpacked"/*; programs=$unpacked
  export LD_LIBRARY_PATH=$programs:${LD_LIBRARY_PATH:-}
fi
if ! ldconfig -p 2> /dev/null | grep -q libnvrtc.so && [ -z "$(ls /usr/local/cuda/lib64/libnvrtc.so* 2> /dev/null)" ]; then
  found=$(python3 -c 'import glob, site, sys
for folder in site.getsitepackages() + sys.path:
    for file in glob.glob(folder + "/nvidia/*/lib/libnvrtc.so.1?"): print(file)' 2> /dev/null | head -1)
  [ -n "$found" ] && export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$(dirname "$found")
fi
if [ ! -x "$programs/test_gpu" ]; then echo "there is no $programs/test_gpu: build it, or run tests/gpu/pack.sh" >&2; exit 1; fi

failed=0
# part NAME LIMIT COMMAND...: its output in OUT/NAME.log, one line here.
part() {
  local name=$1 limit=$2 start=$SECONDS status word
  shift 2
  [ "$limit" -gt "$(left)" ] && limit=$(left)
  if [ "$limit" -le 5 ]; then echo "$name: no time left"; echo "$name not run" >> "$out/checks.log"; failed=1; return; fi
  timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1
  status=$?
  case $status in 0) word=passed ;; 124 | 137) word="ran past its $limit s" ;; *) word="FAILED ($status)" ;; esac
  [ $status -eq 0 ] || failed=1
  echo "$name: $word, $((SECONDS - start)) s"
  echo "$name $word" >> "$out/checks.log"
  [ $status -eq 0 ] || tail -n 25 "$out/$name.log"
}
# times NAME LIMIT COMMAND...: lines of JSON go to OUT/NAME.jsonl.
times() {
  local name=$1 limit=$2
  shift 2
  [ "$limit" -gt "$(left)" ] && limit=$(left)
  if [ "$limit" -le 5 ]; then echo "$name: no time left"; return; fi
  timeout -k 5 "$limit" "$@" > "$out/$name.jsonl" 2> "$out/$name.log" || { echo "$name: stopped ($?)"; tail -n 5 "$out/$name.log"; }
  echo "$name: $(wc -l < "$out/$name.jsonl") lines"
}

first=$(timeout -k 5 60 "$programs/test_gpu" '[errors]' 2>&1)
if grep -q SKIP <<< "$first"; then
  grep -A2 SKIP <<< "$first" | head -5
  exit 0
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2> /dev/null | tee "$out/machine.log"
part errors 30 "$programs/test_gpu" '[errors]'
part models 90 "$programs/test_gpu" '[models]'
part ops 120 "$programs/test_gpu" '[ops]'
part golden 90 "$programs/test_gpu" '[golden]'
times products 50 "$programs/gpu_measure" products 35
times steps 80 "$programs/gpu_measure" steps 50
times attention 45 "$programs/gpu_measure" attention 30
times decode 20 "$programs/gpu_measure" decode 10
if python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
  for what in products attention steps; do times "peer-$what" 60 python3 tests/gpu/peers.py "$what"; done
else
  echo "peers: no PyTorch that sees the GPU"
fi
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck initcheck synccheck; do
    part "sanitize-$tool" 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$programs/test_gpu" '[sanitize]'
  done
else
  echo "compute-sanitizer: not found"
fi
python3 tests/gpu/report.py "$out" || failed=1
exit $failed
