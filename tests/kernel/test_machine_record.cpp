#include <catch2/catch.hpp>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/parameter_use.h"
#include "ir/kernel/verify/verifier.h"
#include "tests/support/graphs/round_trip.h"

using namespace lathe;
using namespace lathe::kernel;

namespace {

/// An operation that only this test knows: to[at + i] = 2 * from[at + i] for 4 elements.
struct Twice {
  BufferId to = none, from = none;
  ValueId at = none;

  static Twice of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const {
    rules.want(at, {i64, 1}, "the index of twice");
    rules.require(rules.buffer(to).dtype == f32, "twice_type", "twice of {}", name(rules.buffer(to).dtype));
  }
  std::string text(const IntrinsicText& text) const {
    return fmt::format("twice {}[{}] = {}[{}]", text.buffer(to), text.value(at), text.buffer(from), text.value(at));
  }
  static Twice parse(IntrinsicReader& in) {
    Twice twice{.to = in.buffer()};
    in.element();
    in.expect("=");
    twice.from = in.buffer(), twice.at = in.element();
    return twice;
  }
  void interpret(const IntrinsicRun& run, ValueId, Thread& t) const {
    for (std::int64_t i = run.integer(at, t), end = i + 4; i < end; ++i)
      run.target(to, t).store(i, {.real = 2 * run.target(from, t).load(i, run.actor(t)).real}, run.actor(t));
  }
};

constinit const IntrinsicRecord twice_record =
    intrinsic_record<Twice>({.name = "twice", .args = {1, 1}, .buffers = {2, 2}});

constexpr const IntrinsicRecord* twice_records[] = {&twice_record};
constexpr IntrinsicFamily twice_family{.operations = twice_records};

Twice Twice::of(const Instruction& in) { return {in.machine->buffers[0].id, in.machine->buffers[1].id, in.args[0]}; }
Instruction Twice::instruction() const {
  return intrinsic_instruction({.record = &twice_record, .buffers = {{to, Access::write}, {from, Access::read}}},
                               {at});
}

Kernel doubled(DType dtype, bool to_input = false, bool later = false) {
  Builder b("doubled");
  const Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
  const Value n = b.dim("n");
  b.parallel_for(0, n, 4, [&](Value i) {
    Instruction in = Twice{to_input ? x.id : y.id, x.id, i.id}.instruction();
    if (later) in.args.push_back(i.id);
    b.machine(in);
  });
  return test::round_trip(b.finish(), twice_family);
}

/// Incomplete operations, each without one required part.
struct WithoutInterpretation {
  static WithoutInterpretation of(const Instruction&);
  Instruction instruction() const;
  void verify(const IntrinsicRules&) const;
  std::string text(const IntrinsicText&) const;
  static WithoutInterpretation parse(IntrinsicReader&);
};
struct WithoutRules {
  static WithoutRules of(const Instruction&);
  Instruction instruction() const;
  std::string text(const IntrinsicText&) const;
  static WithoutRules parse(IntrinsicReader&);
  void interpret(const IntrinsicRun&, ValueId, Thread&) const;
};
struct WithoutParser {
  static WithoutParser of(const Instruction&);
  Instruction instruction() const;
  void verify(const IntrinsicRules&) const;
  std::string text(const IntrinsicText&) const;
  void interpret(const IntrinsicRun&, ValueId, Thread&) const;
};

static_assert(IntrinsicOperation<Twice> && IntrinsicOperation<FromLane>);
static_assert(!IntrinsicOperation<WithoutInterpretation> && !IntrinsicOperation<WithoutRules> &&
              !IntrinsicOperation<WithoutParser>);

}  // namespace

TEST_CASE("intrinsic: printer and verifier and interpreter and walkers handle one defined only in its file") {
  const Kernel kernel = doubled(f32);
  CHECK_THAT(print(kernel), Catch::Contains("    twice y[i0] = x[i0]\n"));
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
  const BoundBuffer bound[] = {{x.data(), 8}, {y.data(), 8}};
  const std::int64_t dims[] = {8};
  interpret(kernel, bound, dims);
  CHECK(y == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
  const ParameterUse use = parameter_use(kernel);
  CHECK(use.loaded == std::vector<bool>{true, false});
  CHECK(use.stored == std::vector<bool>{false, true});
  const std::int64_t beyond[] = {9};
  CHECK_THROWS_WITH(interpret(kernel, bound, beyond), Catch::Contains("[out_of_bounds]"));
}

TEST_CASE("intrinsic: its own rules and the operand rules are enforced") {
  CHECK_THROWS_WITH(doubled(f64), Catch::Contains("twice of f64") && Catch::Contains("[twice_type]"));
  CHECK_THROWS_WITH(doubled(f32, true), Catch::Contains("[access]"));
  CHECK_THROWS_WITH(doubled(f32, false, true), Catch::Contains("a twice of 2 values") && Catch::Contains("[arity]"));
  Kernel kernel = doubled(f32);
  for (Instruction& in : kernel.values)
    if (record_of(in)) in.type = {f32, 4};
  CHECK_THROWS_WITH(verify(kernel), Catch::Contains("a twice of type f32x4") && Catch::Contains("[type]"));
}
