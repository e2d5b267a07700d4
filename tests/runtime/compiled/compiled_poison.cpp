#include <catch2/catch.hpp>

#include <cmath>

#include "codegen/llvm/jit.h"
#include "ir/kernel/build/builder.h"
#include "runtime/cpu/cpu_runner.h"

/// Tests can detect values that a program does not write: outputs and temporaries are poisoned.
using namespace lathe;
using Kind = ProgramBuffer::Kind;

namespace {

/// y[i] = x[i] for the first `count` elements.
kernel::Kernel copy(int count) {
  kernel::Builder b("copy");
  const kernel::Buffer x = b.buffer("x", f32, kernel::Access::read), y = b.buffer("y", f32, kernel::Access::write);
  b.for_loop(0, count, 1, [&](kernel::Value i) { b.store(y, i, b.load(x, i)); });
  return b.finish();
}

/// x -> a temporary, 6 of 8 elements -> y, 7 of 8. The verifier would reject this program.
Program leaky() {
  Program program;
  program.name = "leaky";
  program.kernels = {copy(6), copy(7)};
  const auto buffer = [&](Kind kind, std::string name) {
    program.buffers.push_back(
        {.kind = kind, .name = std::move(name), .dtype = f32, .elements = Dim(8), .data = {}, .loc = {}});
  };
  buffer(Kind::input, "x");
  buffer(Kind::output, "y");
  buffer(Kind::temporary, "t");
  program.inputs = {{"x", f32, Shape({Dim(8)}), 0}};
  program.outputs = {{"y", f32, Shape({Dim(8)}), 1}};
  program.launches.resize(2);
  program.launches[0].kernel = 0;
  program.launches[0].buffers = {0, 2};
  program.launches[1].kernel = 1;
  program.launches[1].buffers = {2, 1};
  return program;
}

}  // namespace

TEST_CASE("poisoned outputs and temporaries are NaN unless written, in every run") {
  const Program program = leaky();
  auto kernels = codegen::Jit({.target = codegen::TargetCpu::host(), .threads = 1}, nullptr).compile(program.kernels);
  const auto runner = make_cpu_runner(program, std::move(kernels), {.poison = true});
  const HostTensor x = HostTensor::from({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::byte* const input = x.data();
  for (int run = 0; run < 2; ++run) {
    HostTensor y(f32, {8});
    std::byte* const output = y.data();
    runner->run({.dims = {}, .inputs = {&input, 1}, .states = {}, .outputs = {&output, 1}});
    for (int i = 0; i < 6; ++i) CHECK(y.get(i) == i + 1);
    CHECK(std::isnan(y.get(6)));
    CHECK(std::isnan(y.get(7)));
  }
}
