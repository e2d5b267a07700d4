#!/usr/bin/env bash
# Runs everything that needs a GPU: correctness first, then timings compared with PyTorch.
#   tests/gpu/run.sh [--programs FOLDER] [--out FOLDER] [--seconds N] [--peers "products attention steps"]
# FOLDER of --programs holds test_gpu and gpu_measure (default: .gpu, which tests/gpu/pack.sh fills for a machine that
# cannot build, else build/tests/gpu). Checks run in parallel, timings sequentially, each with a time limit. A failure
# does not stop the others, and --seconds (570) limits the total. Results: OUT/results.json, OUT/table.md, OUT/*.log.
# Without a GPU: SKIP, exit 0.
set -uo pipefail
cd "$(dirname "$0")/../.."
programs= out=${OUT:-build/gpu-results} total=570 peers="products attention steps"
while [ $# -gt 0 ]; do
  case $1 in
    --programs) programs=$2 ;;
    --out) out=$2 ;;
    --seconds) total=$2 ;;
    --peers) peers=$2 ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$programs" ] || for programs in .gpu build/tests/gpu; do [ -e "$programs/test_gpu" ] || [ -e "$programs/test_gpu.xz" ] && break; done
begin=$SECONDS
mkdir -p "$out"; rm -f "$out"/*.log "$out"/*.jsonl
left() { echo $((total - SECONDS + begin)); }

# pack.sh compresses the programs with their libraries and optionally kernels; NVRTC may be in a Python package. These
# libraries are only for our programs, because PyTorch has its own.
libraries=${LD_LIBRARY_PATH:-}
if ls "$programs"/*.xz > /dev/null 2>&1; then
  unpacked=$(mktemp -d); trap 'rm -rf "$unpacked"' EXIT
  export unpacked
  unpack() { { xz -dc "$1" 2> /dev/null || python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1"; } > "$unpacked/$(basename "$1" .xz)"; }
  export -f unpack
  printf '%s\n' "$programs"/*.xz | xargs -P 8 -I{} bash -c 'unpack {}'
  chmod +x "$unpacked"/*; programs=$unpacked
  libraries=$programs:$libraries
  [ -e "$programs/kernels.tar" ] && tar xf "$programs/kernels.tar" -C "$programs" && export LATHE_CACHE_DIR=$programs/kernels
fi
if ! grep -q libnvrtc.so <<< "$(ldconfig -p 2> /dev/null)" && [ -z "$(ls /usr/local/cuda/lib64/libnvrtc.so* 2> /dev/null)" ]; then
  found=$(python3 -c 'import glob, site, sys
for folder in site.getsitepackages() + sys.path:
    for file in glob.glob(folder + "/nvidia/*/lib/libnvrtc.so.1?"): print(file)' 2> /dev/null | head -1)
  [ -n "$found" ] && libraries=$libraries:$(dirname "$found")
fi
own="env LD_LIBRARY_PATH=$libraries"
if [ ! -x "$programs/test_gpu" ]; then echo "there is no $programs/test_gpu: build it, or run tests/gpu/pack.sh" >&2; exit 1; fi

# check NAME LIMIT COMMAND...: runs in parallel with the others; output to OUT/NAME.log, exit status to
# OUT/checks.log.
check() {
  local name=$1 limit=$2
  shift 2
  [ "$limit" -gt "$(left)" ] && limit=$(left)
  (
    start=$SECONDS
    timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1
    status=$?
    case $status in 0) word=passed ;; 124 | 137) word="ran past its $limit s" ;; *) word="FAILED ($status)" ;; esac
    echo "$name $word, $((SECONDS - start)) s" >> "$out/checks.log"
  ) &
}
# times NAME LIMIT COMMAND...: writes lines of JSON to OUT/NAME.jsonl.
times() {
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  [ "$limit" -gt "$(left)" ] && limit=$(left)
  if [ "$limit" -le 5 ]; then echo "$name: no time left"; return; fi
  timeout -k 5 "$limit" "$@" > "$out/$name.jsonl" 2> "$out/$name.log" || { echo "$name: stopped ($?)"; tail -n 5 "$out/$name.log"; }
  echo "$name: $(wc -l < "$out/$name.jsonl") lines, $((SECONDS - start)) s"
}

first=$(timeout -k 5 60 $own "$programs/test_gpu" '[errors]' 2>&1)
if grep -q SKIP <<< "$first"; then
  grep -A2 SKIP <<< "$first" | head -5
  exit 0
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2> /dev/null | tee "$out/machine.log"
for what in errors math models ops golden products attentions; do check "$what" 150 $own "$programs/test_gpu" "[$what]"; done
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck initcheck synccheck; do
    check "sanitize-$tool" 120 $own "$sanitizer" --tool "$tool" --error-exitcode 9 "$programs/test_gpu" '[sanitize]'
  done
else
  echo "compute-sanitizer: not found"
fi
wait
failed=0
sort "$out/checks.log"
while read -r name word; do
  case $word in passed*) ;; *) failed=1; tail -n 25 "$out/$name.log" ;; esac
done < "$out/checks.log"
times steps 60 $own "$programs/gpu_measure" steps 45
times products 50 $own "$programs/gpu_measure" products 35
times attention 65 $own "$programs/gpu_measure" attention 55
times decode 30 $own "$programs/gpu_measure" decode 20
if python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
  for what in $peers; do times "peer-$what" 90 python3 tests/gpu/peers.py "$what"; done
else
  echo "peers: no PyTorch that sees the GPU"
fi
python3 tests/gpu/report.py "$out" || failed=1
exit $failed
