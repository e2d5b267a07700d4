#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "tests/codegen/harness.h"
#include "tests/codegen/micro_kernel.h"

using namespace lathe;
using namespace lathe::testing;
using codegen::TargetCpu;

namespace {

/// Returns the number of vector register moves from or to the stack.
int spills(const std::string& assembly) {
  std::istringstream lines(assembly);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool moves = line.find("movap") != std::string::npos || line.find("movup") != std::string::npos;
    count += moves && (line.find("(%rsp)") != std::string::npos || line.find("(%rbp)") != std::string::npos);
  }
  return count;
}

int occurrences(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// Returns the instructions of the longest innermost loop, from its label to the jump back.
std::vector<std::string> longest_loop(const std::string& assembly) {
  std::istringstream lines(assembly);
  std::vector<std::string> longest, body;
  std::string label;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".LBB")) {
      label = line.substr(0, line.find(':'));
      body.clear();
    } else if (line.starts_with("\t") && !line.starts_with("\t.")) {
      body.push_back(line);
      if (line.starts_with("\tj") && line.ends_with("\t" + label) && body.size() > longest.size()) longest = body;
    }
  }
  return longest;
}

double seconds(const codegen::CompiledKernel& code, void* const* buffers, const std::int64_t* dims) {
  std::int64_t status = 0;
  double best = 1e9;
  for (int i = 0; i < 100; ++i) {
    const auto start = std::chrono::steady_clock::now();
    code.run(buffers, dims, 0, code.extent(dims), &status);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

TEST_CASE("register tiles stay in registers") {
  const std::string wide = codegen::emit_assembly(micro_kernel(12, 2), TargetCpu::named("x86-64-v4"));
  CHECK(spills(wide) == 0);
  CHECK(occurrences(wide, "vfmadd231ps") == 24);
  CHECK(wide.find("zmm23") != std::string::npos);
  const std::string host = codegen::emit_assembly(micro_kernel(12, 2), TargetCpu::host());
  if (TargetCpu::host().vector_bits == 512) CHECK(spills(host) == 0);
  // Two 256-bit halves for each 16 lanes: 2 x 2 x 2 accumulators and 4 registers of B fit in 16 registers.
  const std::string v3 = codegen::emit_assembly(micro_kernel(2, 2), TargetCpu::named("x86-64-v3"));
  CHECK(spills(v3) == 0);
  CHECK(occurrences(v3, "vfmadd231ps") == 8);
}

TEST_CASE("the loop of a register tile addresses its panels by two registers and constants") {
  const auto body = longest_loop(codegen::emit_assembly(micro_kernel(12, 2), TargetCpu::named("x86-64-v4")));
  INFO(fmt::format("{}", fmt::join(body, "\n")));
  // 24 multiply-adds, 2 loads, 12 broadcasts; in addition two offsets, the index and the jump.
  const auto others = std::ranges::count_if(body, [](const std::string& line) { return !line.starts_with("\tv"); });
  CHECK(body.size() - static_cast<std::size_t>(others) == 38);
  CHECK(others <= 7);
}

TEST_CASE("the micro-kernel computes a matmul") {
  const std::vector<Data> buffers{samples(f32, 12 * 40, 1), samples(f32, 32 * 40, 2), Data(f32, 12 * 32)};
  compare(micro_kernel(), buffers, {40, 1});
  compare(micro_kernel(), buffers, {0, 3});
}

TEST_CASE("micro-kernel speed", "[.bench]") {
  const std::vector<kernel::Kernel> kernels{micro_kernel(), peak_kernel()};
  const codegen::CompiledKernels code = codegen::Jit().compile(kernels);
  std::printf("compiled in %.1f ms\n", 1e3 * code.stats().seconds);
  alignas(64) static float a[12 * 384], b[32 * 384], c[12 * 32];
  void* buffers[] = {a, b, c};
  void* chains[] = {c};
  const std::int64_t peak_dims[] = {100000};
  for (const std::int64_t depth : {64, 128, 192, 256, 384}) {
    const std::int64_t dims[] = {depth, 153600 / depth};
    const double peak = 24.0 * 32 * 1e5 / seconds(code[1], chains, peak_dims) / 1e9;
    const double tile = 12.0 * 32 * 2 * 153600 / seconds(code[0], buffers, dims) / 1e9;
    std::printf("k = %3d: peak %.1f GFLOP/s, micro-kernel %.1f GFLOP/s (%.1f%%)\n", static_cast<int>(depth), peak,
                tile, 100 * tile / peak);
  }
}
