#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/verifier.h"
#include "ir/support/error.h"
#include "tests/codegen/harness.h"
#include "tests/support/kernels/tile_blocks.h"

using namespace lathe;
using namespace lathe::kernel;
using namespace lathe::testing;
using codegen::TargetCpu;
using test::tile_block;

TEST_CASE("tile_mma matches the bits of the interpreter on AMX") {
  if (!TargetCpu::host().has_tiles()) {
    WARN("SKIP: no AMX");
    return;
  }
  constexpr std::int64_t depth = 96, x_stride = depth + 7, y_stride = 66;
  for (const int rows : {16, 32})
    for (const int columns : {16, 32})
      for (const bool continues : {false, true})
        for (const std::int64_t k : {std::int64_t{0}, std::int64_t{32}, depth}) {
          const std::vector<Data> buffers = {
              samples(f32, std::int64_t{rows} * columns, 1), samples(bf16, rows * x_stride, 2),
              samples(bf16, depth / 2 * y_stride, 3), Data(f32, std::int64_t{rows} * columns)};
          compare(tile_block(rows, columns, continues), buffers, {k, x_stride, y_stride});
        }
}

TEST_CASE("tile_mma of split bf16 matches the bits of the interpreter on AMX") {
  if (!TargetCpu::host().has_tiles()) {
    WARN("SKIP: no AMX");
    return;
  }
  for (const int side : {16, 32})
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{32}, std::int64_t{96}}) {
      const std::int64_t elements = 3 * bf16_terms * term_elements;
      const std::vector<Data> buffers = {samples(f32, std::int64_t{side} * 32, 1), samples(bf16, elements, 2),
                                         samples(bf16, elements, 3), Data(f32, std::int64_t{side} * 32)};
      compare(tile_block(side, 32, true, 40, true), buffers, {k, 0, 0});
      compare(tile_block(32, side, false, 40, true, 7), buffers, {k, 0, 0});
    }
}

TEST_CASE("split bf16 terms match the bits of the interpreter, also for special values") {
  Builder b("terms");
  const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::read),
               out = b.buffer("out", bf16, Access::write);
  constexpr int count = 1024;
  b.parallel_for(0, count, 16, [&](Value i) {
    for (int s = 0; s < bf16_terms; ++s)
      b.store(out, (i * bf16_terms + s * 16) * 2, split_bf16(b, b.load(x, i, 16), b.load(y, i, 16), s));
  });
  const Kernel terms = b.finish();
  CHECK_THAT(kernel::print(terms), Catch::Contains("split_bf16.2 "));
  for (const std::uint64_t seed : {1, 2, 3})
    compare(terms, {samples(f32, count, seed), samples(f32, count, seed + 10), Data(bf16, count * 2 * bf16_terms)},
            {});
  CHECK_THROWS_WITH(kernel::verify([&] {
                      Builder wrong("wrong");
                      const Buffer from = wrong.buffer("x", f32, Access::read_write);
                      const Value v = wrong.load(from, 0, 16);
                      wrong.store(from, 0, wrong.cast(split_bf16(wrong, v, v, 3), f32));
                      return wrong.finish();
                    }()),
                    Catch::Contains("[bf16_terms]"));
}

TEST_CASE("tile_mma compiles to AMX instructions that configure and release the tile registers") {
  const TargetCpu amx = TargetCpu::named("x86-64-v4,+avx512bf16,+amx-tile,+amx-bf16");
  CHECK(amx.has_tiles());
  std::string code = codegen::emit_assembly(tile_block(32, 32, true), amx);
  const auto count = [&](const std::string& instruction) {
    int found = 0;
    for (auto at = code.find(instruction); at != std::string::npos; at = code.find(instruction, at + 1)) ++found;
    return found;
  };
  CHECK(count("tdpbf16ps") == 4);
  CHECK(count("tileloadd") == 8);
  CHECK(count("tilestored") == 4);
  code = codegen::emit_assembly(tile_block(32, 32, false, 40, true), amx);
  CHECK(count("tdpbf16ps") == 24);
  CHECK(count("tileloadd") == 14);  // between consecutive products of terms, one operand stays loaded
  CHECK(count("prefetch") == 0);
  for (const bool split_bf16 : {false, true}) {
    code = codegen::emit_assembly(tile_block(32, 32, false, 40, split_bf16, 7), amx);
    CHECK(count("prefetcht1") == 7);
  }
  CHECK(count("ldtilecfg") == 1);
  CHECK(count("tilerelease") == 1);
  CHECK_THROWS_WITH(codegen::emit_assembly(tile_block(32, 32, true), TargetCpu::named("x86-64-v4")),
                    Catch::Contains("no AMX"));
}

TEST_CASE("a target CPU name can add and remove features") {
  const TargetCpu host = TargetCpu::host();
  CHECK(TargetCpu::named("host") == host);
  const TargetCpu without = TargetCpu::named("host,-amx-bf16");
  CHECK(!without.has_tiles());
  CHECK(without.runs_here());
  CHECK(without.vector_bits == host.vector_bits);
  CHECK(TargetCpu::named("x86-64-v3,+amx-tile").features == TargetCpu::named("x86-64-v3").features + ",+amx-tile");
  const TargetCpu wide = TargetCpu::named("x86-64-v4"), shorter = TargetCpu::named("x86-64-v4,+prefer-256-bit");
  CHECK(wide.vector_bits == 512);
  CHECK(shorter.vector_bits == 256);
  CHECK(shorter.features == wide.features);
  CHECK(TargetCpu::named("x86-64-v2,+prefer-256-bit").vector_bits == 128);
  CHECK_THROWS_WITH(TargetCpu::named("host,-prefer-256-bit"), Catch::Contains("[unknown_cpu]"));
  CHECK_THROWS_WITH(TargetCpu::named("x86-64-v4,+sse9"), Catch::Contains("[unknown_cpu]") && Catch::Contains("sse9"));
  CHECK_THROWS_WITH(TargetCpu::named("x86-64-v4,"), Catch::Contains("[unknown_cpu]"));
}
