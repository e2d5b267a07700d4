#!/usr/bin/env bash
# Packs the programs that tests/gpu/run.sh runs into .gpu, with the libraries that they need, for a machine with a GPU
# but without build tools. tests/gpu/pack.sh [BUILD [KERNELS]]
# KERNELS: a kernel cache folder of the programs (LATHE_CACHE_DIR) for that architecture and version of NVRTC.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build} kernels=${2:-}
rm -rf .gpu; mkdir .gpu
for program in test_gpu gpu_measure; do
  strip -o ".gpu/$program" "$build/tests/gpu/$program"
  ldd "$build/tests/gpu/$program" | awk '$3 ~ /^\// {print $3}'
done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | while read -r library; do
  cp -L "$library" .gpu/
done
[ -z "$kernels" ] || tar cf .gpu/kernels.tar -C "$(dirname "$kernels")" --transform "s,^$(basename "$kernels"),kernels," "$(basename "$kernels")"
xz -T0 -6 .gpu/*
du -sh .gpu
