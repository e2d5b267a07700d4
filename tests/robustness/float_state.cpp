#include <fmt/core.h>
#include <xmmintrin.h>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "tests/robustness/support/attack.h"
#include "tests/support/programs/isolated.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::robustness {

namespace {

/// Results that depend on rounding, subnormal operands and results, and divisions by zero.
constexpr const char* program = R"(graph @g(input %x: f32[n, d=64], input %w: f32[d=64, d=64]) {
  %1 = contract %x, %w {spec="ab,cb->ac"}
  %2 = softmax %1 {dim=1}
  %tiny = mul %x, %x
  %s = sum %x {dims=[1], keepdim=true}
  %q = div %x, %s
  %e = exp %1
  output "p" %2
  output "tiny" %tiny
  output "q" %q
  output "e" %e
}
)";

Tensors arguments() {
  HostTensor x(f32, {70, 64}), w(f32, {64, 64});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.set(i, i % 7 == 0 ? 1e-22 * static_cast<double>(i) : 0.1 / static_cast<double>(i + 3));
  for (std::int64_t i = 0; i < w.numel(); ++i) w.set(i, static_cast<double>(i % 13) / 3 - 2);
  return {{"x", x}, {"w", w}};
}

struct State {
  const char* name;
  unsigned set, cleared;  ///< bits of MXCSR
};

constexpr State states[] = {{"subnormals are flushed", 0x8040, 0},
                            {"rounding down", 0x2000, 0x4000},
                            {"rounding up", 0x4000, 0x2000},
                            {"rounding to zero", 0x6000, 0},
                            {"exceptions trap", 0, 0x1f80}};

std::optional<std::string> complaint(const State& state, int threads, bool compile_too) {
  const ir::Graph graph = ir::parse_graph(program, "float_state.lathe");
  Executable executable = compile(graph, {.threads = threads});
  const Tensors expected = executable.run(arguments()), inputs = arguments();
  const unsigned before = _mm_getcsr(), other = (before & ~state.cleared & ~0x3fu) | state.set;
  _mm_setcsr(other);
  std::optional<Executable> again;
  if (compile_too) again.emplace(compile(graph, {.threads = threads}));
  const Tensors found = (again ? *again : executable).run(inputs);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  if ((after & ~0x3fu) != other) return fmt::format("the caller's state changed from {:#x} to {:#x}", other, after);
  for (const auto& [name, value] : expected)
    if (!test::same_bits(found.at(name), value)) return fmt::format("{} has other bits", name);
  return std::nullopt;
}

}  // namespace

void attack_float_state(Report& report) {
  for (const State& state : states)
    for (const int threads : {1, 3})
      for (const bool compile_too : {false, true}) {
        const auto wrong = test::isolated([&] { return complaint(state, threads, compile_too); }, 60);
        report.count(wrong ? "wrong" : "unaffected");
        if (wrong)
          report.fail(
              fmt::format("{}, {} threads{}", state.name, threads, compile_too ? ", also while compiling" : ""),
              *wrong);
      }
}

}  // namespace lathe::robustness
