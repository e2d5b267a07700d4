#include <xmmintrin.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "frontend/dsl.h"
#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "runtime/threads/thread_pool.h"
#include "tests/support/tensors/compare_tensors.h"

/// The caller's floating-point environment does not change results, and is preserved.
using namespace lathe;

namespace {

// MXCSR: FTZ, DAZ, the value in a new process, and the flags that arithmetic sets.
constexpr unsigned flush_results = 0x8000, flush_operands = 0x0040, usual_mxcsr = 0x1f80, mxcsr_flags = 0x3f;

/// Modes that a caller may have set.
struct FloatMode {
  const char* name;
  std::function<void()> set;
};

const std::vector<FloatMode>& modes() {
  static const std::vector<FloatMode> all{
      {"FTZ", [] { _mm_setcsr(_mm_getcsr() | flush_results); }},
      {"DAZ", [] { _mm_setcsr(_mm_getcsr() | flush_operands); }},
      {"FTZ and DAZ", [] { _mm_setcsr(_mm_getcsr() | flush_results | flush_operands); }},
      {"upward", [] { std::fesetround(FE_UPWARD); }},
      {"downward", [] { std::fesetround(FE_DOWNWARD); }},
      {"toward zero", [] { std::fesetround(FE_TOWARDZERO); }},
      {"traps", [] { ::feenableexcept(FE_ALL_EXCEPT); }},
      {"flags", [] { std::feraiseexcept(FE_UNDERFLOW | FE_DIVBYZERO); }},
  };
  return all;
}

/// The complete floating-point environment of a thread.
struct State {
  unsigned mxcsr = _mm_getcsr();
  int rounding = std::fegetround(), traps = ::fegetexcept(), flags = std::fetestexcept(FE_ALL_EXCEPT);
  bool operator==(const State&) const = default;
};

/// Sets a mode while alive, and restores the previous environment.
class InMode {
 public:
  explicit InMode(const FloatMode& mode) {
    std::fegetenv(&before_);
    mode.set();
    set_ = State();
  }
  ~InMode() { end(); }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;

  /// Runs `body`, which must not change the environment.
  template <class Body>
  auto run(Body body) {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      kept_ = kept_ && State() == set_;
    } else {
      auto result = body();
      kept_ = kept_ && State() == set_;
      return result;
    }
  }
  bool kept() const { return kept_; }
  void end() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
  State set_;
  bool kept_ = true;
};

/// Subnormal operands and results, rounding, infinities and NaN in every kind of kernel, C library functions, casts,
/// and constants that are folded at compile time.
constexpr const char* program = R"(graph @g(input %x: f32[n, 40], input %w: f32[40, 40], input %i: i64[n]) {
  %tiny = constant {dtype=f32, shape=[4], values=[1e-40, 1e-30, 3.3e-45, 0.1]}
  %third = constant {dtype=f32, shape=[4], values=[0.3333333333333333]}
  %square = mul %tiny, %tiny
  %thirds = mul %tiny, %third
  %scaled = mul %x, %x
  %small = contract %scaled, %w {spec="nk,kj->nj"}
  %product = contract %x, %w {spec="nk,kj->nj"}
  %quotient = div %x, %product
  %root = rsqrt %x
  %softmax = softmax %product {dim=1}
  %sum = sum %x {dims=[0]}
  %whole = round %product
  %half = cast %product {dtype=f16}
  %brain = cast %product {dtype=bf16}
  %wide = cast %product {dtype=f64}
  %tanh = tanh %wide
  %log = log %wide
  %sine = sin %wide
  %rows = gather %w, %i {dim=0}
  output "square" %square
  output "thirds" %thirds
  output "small" %small
  output "product" %product
  output "quotient" %quotient
  output "root" %root
  output "softmax" %softmax
  output "sum" %sum
  output "whole" %whole
  output "half" %half
  output "brain" %brain
  output "tanh" %tanh
  output "log" %log
  output "sine" %sine
  output "rows" %rows
})";

constexpr std::int64_t width = 40;

Tensors arguments(std::int64_t rows = 3000) {
  HostTensor x(f32, {rows, width}), w(f32, {width, width}), i(i64, {rows});
  for (std::int64_t e = 0; e < x.numel(); ++e)
    x.set(e, std::ldexp(static_cast<double>(e % 1009 - 500) / 7, static_cast<int>(e % 11) * -13));
  for (std::int64_t e = 0; e < w.numel(); ++e)
    w.set(e, std::ldexp(static_cast<double>(e % 101 - 50) / 3, static_cast<int>(e % 5) * -20));
  for (std::int64_t e = 0; e < rows; ++e) i.set_int(e, e % width);
  return {{"x", x}, {"w", w}, {"i", i}};
}

void check_same(const Tensors& found, const Tensors& expected) {
  CHECK(found.size() == expected.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(found.at(name).same_bits(value));
  }
}

}  // namespace

TEST_CASE("the caller's floating-point environment: results have the same bits, and it is unchanged") {
  const Tensors inputs = arguments();
  const ir::Graph graph = ir::parse_graph(program, "test");
  for (const int threads : {1, 3}) {
    Executable plain = compile(graph, {.threads = threads});
    const Tensors expected = plain.run(inputs);
    for (const FloatMode& mode : modes()) {
      INFO(mode.name << ", " << threads << " threads");
      InMode in(mode);
      // Set before the compilation and its threads.
      Executable compiled = in.run(
          [&] { return compile(in.run([&] { return ir::parse_graph(program, "test"); }), {.threads = threads}); });
      const Tensors first = in.run([&] { return compiled.run(inputs); });
      const Tensors again = in.run([&] { return compiled.run(inputs); });
      // Set between runs, after the compilation.
      const Tensors later = in.run([&] { return plain.run(inputs); });
      CHECK(in.kept());
      in.end();
      const Tensors after = compiled.run(inputs);
      for (const Tensors* found : {&first, &again, &later, &after}) check_same(*found, expected);
    }
  }
}

TEST_CASE("the caller's floating-point environment: the interpreter, initial values and tensors") {
  const ir::Graph graph = ir::parse_graph(program, "test");
  const Tensors inputs = arguments(50);
  const Tensors expected = ir::interpret(graph, inputs, {.round = true});
  const auto initial = [] { return initial_value(Init::normal({.deviation = 1e-38}), "w", f32, {40, 40}, 7); };
  const HostTensor weights = initial(), numbers = HostTensor::from({4}, {1e-40, 0.1, 1e-45, 1.0 / 3}, f32);
  for (const FloatMode& mode : modes()) {
    INFO(mode.name);
    InMode in(mode);
    const Tensors found = in.run([&] { return ir::interpret(graph, inputs, {.round = true}); });
    const HostTensor made = in.run(initial),
                     from = in.run([] { return HostTensor::from({4}, {1e-40, 0.1, 1e-45, 1.0 / 3}, f32); }),
                     narrow = in.run([&] { return weights.cast(f16); });
    CHECK(in.kept());
    in.end();
    check_same(found, expected);
    CHECK(made.same_bits(weights));
    CHECK(from.same_bits(numbers));
    CHECK(narrow.same_bits(weights.cast(f16)));
  }
}

TEST_CASE("the caller's floating-point environment is unchanged after an error") {
  const ir::Graph graph = ir::parse_graph(program, "test");
  Tensors wrong = arguments();
  wrong.at("i").set_int(17, width);
  for (const int threads : {1, 3}) {
    Executable compiled = compile(graph, {.threads = threads});
    for (const FloatMode& mode : modes()) {
      INFO(mode.name << ", " << threads << " threads");
      InMode in(mode);
      const std::string found = in.run([&] { return test::outcome([&] { return compiled.run(wrong); }).label; }),
                        unbound = in.run([&] { return test::outcome([&] { return compiled.run({}); }).label; }),
                        parsed = in.run([] {
                          return test::outcome([]() -> Tensors {
                                   compile(ir::parse_graph("graph @g() {\n}", "test"), {.threads = 2000});
                                   return {};
                                 })
                              .label;
                        });
      CHECK(in.kept());
      in.end();
      CHECK(found == "index_range");
      CHECK_FALSE(unbound.empty());
      CHECK(parsed == "thread_count");
    }
  }
}

TEST_CASE("pool threads use the default floating-point environment, whatever that of their creator is") {
  for (const FloatMode& mode : modes()) {
    INFO(mode.name);
    std::atomic<int> others = 0, wrong = 0;
    {
      InMode in(mode);
      ThreadPool pool(3);
      in.end();
      for (int i = 0; i < 200 && others == 0; ++i)
        pool.run(64, 1, [&](std::int64_t, std::int64_t, int thread) {
          if (thread == 0) return void(std::this_thread::sleep_for(std::chrono::microseconds(50)));
          ++others;
          const State found;
          wrong += (found.mxcsr & ~mxcsr_flags) != usual_mxcsr || found.rounding != FE_TONEAREST || found.traps != 0;
        });
    }
    CHECK(others > 0);
    CHECK(wrong == 0);
  }
}
