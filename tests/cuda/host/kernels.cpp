#include "tests/cuda/host/kernels.h"

#include <catch2/catch.hpp>

#include <cstring>

#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/support/error.h"
#include "tests/cuda/host/host_cuda.h"

namespace lathe::test {

using namespace kernel;

Kernel scale_kernel() {
  Builder b("scale");
  b.note("%3 mul mlp.cpp:14");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value n = b.dim("n");
  const auto block = [&](Value first) {
    const auto thread = [&](Value offset) {
      Value i = first + offset;
      const auto scaled = [&](Value mask) { b.store(y, i, b.load(x, i, 4, mask) * 2.0, mask); };
      b.if_(i + 4 <= n, [&] { scaled({}); }, [&] { scaled(b.tail_mask(n - i, 4)); });
    };
    b.for_loop(0, 128, 4, thread, LoopKind::thread_x);
  };
  b.for_loop(0, n, 128, block, LoopKind::block_x);
  return b.finish();
}

Kernel reverse_kernel(bool with_barrier) {
  Builder b("reverse");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value blocks = b.dim("blocks");
  const auto block = [&](Value i) {
    Buffer piece = b.alloc(f32, 32, Space::shared, "piece");
    const auto thread = [&](Value t) {
      b.store(piece, t, b.load(x, i * 32 + t));
      if (with_barrier) b.barrier();
      b.store(y, i * 32 + t, b.load(piece, b.index(31) - t));
    };
    b.for_loop(0, 32, 1, thread, LoopKind::thread_x);
  };
  b.for_loop(0, blocks, 1, block, LoopKind::block_x);
  return b.finish();
}

Kernel row_sum_kernel() {
  Builder b("row_sum");
  b.note("%7 sum \"norm.cpp\":31");
  Buffer x = b.buffer("x", f32, Access::read), out = b.buffer("out", f32, Access::write);
  Value rows = b.dim("rows"), cols = b.dim("cols");
  const auto block = [&](Value row) {
    Buffer partial = b.alloc(f32, 64, Space::shared, "partial");
    const auto thread = [&](Value t) {
      Var sum = b.var(b.constant(f32, 0));
      b.for_loop(t, cols, 64, [&](Value col) { b.set(sum, b.get(sum) + b.load(x, row * cols + col)); });
      b.store(partial, t, b.get(sum));
      for (int half = 32; half >= 1; half /= 2) {
        b.barrier();
        b.if_(t < half, [&] { b.store(partial, t, b.load(partial, t) + b.load(partial, t + half)); });
      }
      b.if_(equal(t, 0), [&] { b.store(out, row, b.load(partial, 0)); });
    };
    b.for_loop(0, 64, 1, thread, LoopKind::thread_x);
  };
  b.for_loop(0, rows, 1, block, LoopKind::block_x);
  return b.finish();
}

Kernel turn_kernel(DType dtype) {
  Builder b("turn");
  Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
  const auto thread = [&](Value t) { b.store(y, t, from_lane(b, b.load(x, t), (t * 7 + 3) % 32)); };
  b.for_loop(0, 64, 1, thread, LoopKind::thread_x);
  return b.finish();
}

Kernel partner_kernel(DType dtype) {
  Builder b("partner");
  Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
  const auto thread = [&](Value t) {
    const Value partner = b.apply(ScalarOp::bit_xor, {t % warp_threads, b.index(5)});
    b.store(y, t, from_lane(b, b.load(x, t), partner));
  };
  b.for_loop(0, 64, 1, thread, LoopKind::thread_x);
  return b.finish();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::string prelude_with(const std::string& text, const std::string& mistake) {
  std::string prelude = cuda::prelude();
  const auto at = prelude.find(text);
  REQUIRE(at != std::string::npos);
  return prelude.replace(at, text.size(), mistake);
}

void check_detected(const Kernel& kernel, const std::function<std::vector<float>(const RunWith&)>& result,
                    const char* text, const char* mistake) {
  INFO(mistake << " for " << text);
  const auto host = HostCuda::build({&kernel, 1}, prelude_with(text, mistake));
  if (!host) return;
  const auto right = result([&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
  bool detected = false;
  try {
    detected = !same_bits(result([&](auto buffers, auto dims) { host->run(kernel, buffers, dims, 3); }), right);
  } catch (const InternalError&) {  // threads wait forever
    detected = true;
  }
  CHECK(detected);
}

}  // namespace lathe::test
