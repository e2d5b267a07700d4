#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "ir/kernel/printer.h"
#include "tests/codegen/harness.h"

using namespace lathe;
using namespace lathe::kernel;
using namespace lathe::testing;

namespace {

/// Copies n elements with vectors and a masked tail. Buffers have exactly n elements, so that the interpreter detects
/// any access past their end.
Kernel tail_copy(DType dtype, int lanes) {
  Builder b(fmt::format("tail_copy_{}_{}", name(dtype), lanes));
  Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, lanes, [&](Value i) {
    Value mask = b.tail_mask(n - i, lanes);
    b.store(y, i, b.load(x, i, lanes, mask), mask);
  });
  return b.finish();
}

constexpr DType real_dtypes[] = {f64, f32, bf16, f16, i64, i32, boolean};

}  // namespace

TEST_CASE("masked remainders of every dtype and width") {
  for (const DType dtype : real_dtypes)
    for (const int lanes : {1, 4, 16}) {
      const Kernel kernel = tail_copy(dtype, lanes);
      for (const std::int64_t n : {0, 1, 15, 16, 17, 37})
        compare(kernel, {samples(dtype, n, 3), Data(dtype, n)}, {n});
    }
}

TEST_CASE("masked lanes load zero and stores leave them unchanged") {
  Builder b("odd_lanes");
  Buffer x = b.buffer("x", f32, Access::read), mask_in = b.buffer("m", boolean, Access::read);
  Buffer y = b.buffer("y", f32, Access::read_write), z = b.buffer("z", f32, Access::write);
  b.for_loop(0, 64, 16, [&](Value i) {
    Value mask = b.load(mask_in, i, 16);
    Value loaded = b.load(x, i, 16, mask);
    b.store(z, i, loaded);
    b.store(y, i, loaded * 2.0, mask);
  });
  const Outcome result =
      compare(b.finish(), {samples(i32, 64, 1), samples(boolean, 64, 2), samples(f32, 64, 3), Data(f32, 64)}, {});
  const auto kept = result.buffers[1].as<std::uint8_t>();
  const auto loads = result.buffers[3].as<float>();
  for (std::size_t i = 0; i < 64; ++i)
    if (!kept[i]) CHECK(loads[i] == 0);
}

TEST_CASE("streaming stores write what plain stores write, at and across cache lines") {
  for (const DType dtype : real_dtypes)
    for (const int lanes : {16, 64}) {
      Builder b(fmt::format("stream_{}_{}", name(dtype), lanes));
      Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
      Value start = b.dim("start");
      b.parallel_for(0, 3, 1, [&](Value i) { b.stream(y, start + i * lanes, b.load(x, i * lanes, lanes)); });
      const Kernel kernel = b.finish();
      CHECK_THAT(print(kernel), Catch::Contains("stream y["));
      // Memory is aligned to 16 bytes: one of the four is aligned to a cache line.
      for (const std::int64_t quarter : {0, 1, 2, 3})
        compare(kernel, {samples(dtype, 3 * lanes, 3), Data(dtype, 3 * lanes + 48)},
                {quarter * 16 / static_cast<std::int64_t>(size_in_bytes(dtype))});
    }
}

TEST_CASE("strided and gathered accesses of every dtype") {
  for (const DType dtype : real_dtypes) {
    Builder b(fmt::format("strided_{}", name(dtype)));
    Buffer x = b.buffer("x", dtype, Access::read), index = b.buffer("index", i64, Access::read);
    Buffer y = b.buffer("y", dtype, Access::read_write), z = b.buffer("z", dtype, Access::read_write);
    Value rows = b.dim("rows"), columns = b.dim("columns");
    // y = x^T by strided loads and stores; z = x[index], scattered with a mask.
    b.parallel_for(0, columns, 1, [&](Value c) {
      b.for_loop(0, rows, 8, [&](Value r) {
        Value mask = b.tail_mask(rows - r, 8);
        b.store(y, c * rows + r, b.load_strided(x, r * columns + c, columns, 8, mask), mask);
      });
      Value first = b.load_strided(x, c, columns, 4);
      b.store_strided(z, c, columns, first);
      Value at = b.load(index, c * 4, 4);
      Value picked = b.gather(x, at);
      b.scatter(z, at + columns * 4, picked);
      Value keep = b.ramp(c, 4) < 5;
      b.scatter(z, b.ramp(c * 4, 4) + columns * rows, b.gather(x, at, keep), keep);
      b.store_strided(z, c + columns * rows * 2, columns, picked, keep);
    });
    const Kernel kernel = b.finish();
    const std::int64_t r = 13, c = 7;
    std::vector<std::int64_t> at;
    for (int i = 0; i < 4 * c; ++i) at.push_back((i * 5) % (4 * c));
    compare(kernel, {samples(dtype, r * c, 4), Data::of(i64, at), Data(dtype, r * c), Data(dtype, 4 * r * c)},
            {r, c});
  }
}

TEST_CASE("loads at small strides of every dtype, with every mask of the first lanes") {
  for (const DType dtype : real_dtypes)
    for (const std::int64_t stride : {-3, -2, -1, 0, 1, 2, 3})
      for (const int lanes : {2, 8, 16}) {
        Builder b(fmt::format("stride_{}_{}_{}", stride + 3, lanes, name(dtype)));
        const Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
        const std::int64_t extent = (stride < 0 ? -stride : stride) * (lanes - 1) + 1;
        const Value first = b.index(stride < 0 ? extent - 1 : 0);
        b.parallel_for(0, lanes + 2, 1, [&](Value active) {
          const auto copy = [&](Value mask) {
            b.store(y, active * lanes, b.load_strided(x, first, b.index(stride), lanes, mask));
          };
          b.if_(active <= lanes, [&] { copy(b.tail_mask(active, lanes)); }, [&] { copy({}); });
        });
        compare(b.finish(), {samples(dtype, extent, 5), Data(dtype, (lanes + 2) * lanes)}, {});
      }
}

TEST_CASE("a prefetch inside or outside a buffer does not change results") {
  Builder b("prefetched");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  b.parallel_for(0, 3, 1, [&](Value i) {
    b.prefetch(x, i + 1);
    b.prefetch(y, i - 1000000);
    b.store(y, i, b.load(x, i) + 1);
  });
  const Kernel kernel = b.finish();
  compare(kernel, {Data::of(f32, std::vector<float>{1, 2, 3}), Data(f32, 3)}, {});
  const std::string code = codegen::emit_llvm_ir(kernel, codegen::TargetCpu::host());
  CHECK_THAT(code, Catch::Contains("llvm.prefetch"));
}

TEST_CASE("the last lane wins when a scatter writes an element twice") {
  Builder b("collisions");
  Buffer y = b.buffer("y", i64, Access::write);
  Value lanes = b.ramp(b.index(0), 16);
  b.scatter(y, lanes / 4, lanes);
  const Outcome result = compare(b.finish(), {Data(i64, 4)}, {});
  CHECK(result.buffers[0].as<std::int64_t>() == std::vector<std::int64_t>{3, 7, 11, 15});
}

TEST_CASE("stack and register scratch") {
  Builder b("scratch");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 1, [&](Value row) {
    Buffer tmp = b.alloc(f32, 64), few = b.alloc(f32, 4, Space::register_);
    b.for_loop(0, 64, 16, [&](Value i) { b.store(tmp, i, b.load(x, row * 64 + i, 16) * 3.0, {}, 64); });
    b.for_loop(0, 4, 1, [&](Value j) { b.store(few, j, b.load(tmp, 63 - j)); }, LoopKind::unroll);
    b.for_loop(0, 64, 1, [&](Value i) { b.store(y, row * 64 + i, b.load(tmp, 63 - i) + b.load(few, i % 4)); });
  });
  compare(b.finish(), {samples(f32, 640, 1), Data(f32, 640)}, {10});
}

TEST_CASE("in-place buffers that may alias") {
  Builder b("in_place");
  Buffer x = b.buffer("x", f32, Access::read, false), y = b.buffer("y", f32, Access::write, false);
  Value n = b.dim("n");
  b.parallel_for(0, n, 16, [&](Value i) { b.store(y, i, b.load(x, i, 16) + 1.0); });
  const Kernel kernel = b.finish();
  const codegen::CompiledKernels code = codegen::Jit().compile({&kernel, 1});
  std::vector<float> data(64, 2.0f);
  void* buffers[] = {data.data(), data.data()};
  const std::int64_t dims[] = {64};
  std::int64_t status = 0;
  code[0].run(buffers, dims, 0, code[0].extent(dims), &status);
  CHECK(data == std::vector<float>(64, 3.0f));
  const std::string text = codegen::emit_llvm_ir(kernel, codegen::TargetCpu::host());
  CHECK(text.find("noalias") == std::string::npos);
}

TEST_CASE("a prefetch targets L2") {
  Builder b("prefetch");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  b.parallel_for(0, b.dim("n"), 1, [&](Value i) {
    b.prefetch(x, i + 1024);
    b.store(y, i, b.load(x, i));
  });
  const std::string code = codegen::emit_assembly(b.finish(), codegen::TargetCpu::named("x86-64-v4"));
  CHECK(code.find("prefetcht1") != std::string::npos);
  CHECK(code.find("prefetcht0") == std::string::npos);
}
