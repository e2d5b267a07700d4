#include <catch2/catch.hpp>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/parameter_use.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/kernel/verify/verifier.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/programs/first_threads.h"

/// Intrinsic regions: how walkers handle one that they do not know.
using namespace lathe;
using namespace lathe::kernel;
using test::first_threads_record;
using test::FirstThreads;

namespace {

/// The first 3 of 8 threads store 10 + i to y[i] and to shared memory; the others read it and store it further on.
Kernel shared_out(bool with_barrier = true) {
  Builder b("shared_out");
  const Buffer y = b.buffer("y", f32, Access::write);
  const Buffer tile = b.alloc(f32, 3, Space::shared, "tile");
  const auto thread = [&](Value t) {
    const auto body = [&](Value i) {
      const Value v = b.cast(i + 10, f32);
      b.store(y, i, v);
      b.store(tile, i, v);
    };
    b.region(first_threads_record, {3}, {body});
    if (with_barrier) b.barrier();
    b.if_(t >= 3, [&] { b.store(y, t, b.load(tile, t % 3) * 2.0); });
  };
  b.for_loop(0, 8, 1, thread, LoopKind::thread_x);
  return test::round_trip(b.finish(), test::first_threads_family);
}

IntrinsicRegion& region_in(Kernel& kernel) {
  IntrinsicRegion* found = nullptr;
  for_each_statement(kernel.body, [&](const Statement& s) {
    if (const IntrinsicRegion* region = region_of(s, first_threads_record))
      found = const_cast<IntrinsicRegion*>(region);
  });
  REQUIRE(found);
  return *found;
}

std::vector<float> run(const Kernel& kernel) {
  std::vector<float> y(8);
  const BoundBuffer bound[] = {{y.data(), 8}};
  interpret(kernel, bound, {});
  return y;
}

/// Incomplete regions, each without one required part.
struct WithoutPlace {
  static WithoutPlace of(const IntrinsicRegion&);
  void verify_bodies(const IntrinsicRegionRules&) const;
  std::string text(const IntrinsicText&) const;
  static IntrinsicRegion parse(IntrinsicReader&);
  void interpret(IntrinsicRun&, std::span<Thread* const>) const;
};
struct WithoutMeaning {
  static WithoutMeaning of(const IntrinsicRegion&);
  void verify_place(const IntrinsicRegionRules&) const;
  void verify_bodies(const IntrinsicRegionRules&) const;
  std::string text(const IntrinsicText&) const;
  static IntrinsicRegion parse(IntrinsicReader&);
};

static_assert(IntrinsicRegionOf<FirstThreads>);
static_assert(!IntrinsicRegionOf<WithoutPlace> && !IntrinsicRegionOf<WithoutMeaning>);

}  // namespace

TEST_CASE("intrinsic region: printer and walkers handle one defined only in its file") {
  const Kernel kernel = shared_out();
  CHECK_THAT(print(kernel), Catch::Contains("    first_threads 3 i1 run {\n"
                                            "      %0 = add i1, 10 : i64\n") &&
                                Catch::Contains("    }\n    barrier\n"));
  CHECK(print(kernel) == print(shared_out()));
  CHECK(parameter_use(kernel).stored == std::vector<bool>{true});
  CHECK(holds_region(kernel.body));
  CHECK(holds_region(kernel.body, &first_threads_record));
}

TEST_CASE("intrinsic region: its threads run its body, the others wait at the next barrier") {
  CHECK(run(shared_out()) == std::vector<float>{10, 11, 12, 20, 22, 24, 20, 22});
  CHECK_THROWS_WITH(run(shared_out(false)), Catch::Contains("with no barrier between  [race]"));
}

TEST_CASE("intrinsic region: its own rules, the rules of its parts and of its definitions are enforced") {
  const auto refused = [](const auto& change, const std::string& text, const std::string& label) {
    Kernel kernel = shared_out();
    change(kernel, region_in(kernel));
    CHECK_THROWS_WITH(verify(kernel), Catch::Contains(text + "  [" + label + "]"));
  };
  refused([](Kernel&, IntrinsicRegion& r) { r.record = nullptr; }, "an intrinsic region without a record", "arity");
  refused([](Kernel&, IntrinsicRegion& r) { r.attributes.push_back(1); }, "a first_threads of 2 attributes", "arity");
  refused([](Kernel&, IntrinsicRegion& r) { r.bodies.emplace_back(); }, "a first_threads of 2 bodies", "arity");
  refused([](Kernel&, IntrinsicRegion& r) { r.index = none; }, "a first_threads of 0 indices", "arity");
  refused([](Kernel&, IntrinsicRegion& r) { r.bodies[0].clear(); }, "a first_threads of 3 that does nothing",
          "first_threads_body");
  refused([](Kernel& k, IntrinsicRegion& r) { k.values[static_cast<std::size_t>(r.index)].type = {i32, 1}; },
          "is no thread number", "loop_index");
  refused([](Kernel& k, IntrinsicRegion& r) { k.body.push_back({IntrinsicRegion(r)}); },
          "a first_threads outside the thread loops or in a branch", "first_threads_place");
  const auto uses_index_behind = [](Kernel& k, IntrinsicRegion& r) {
    auto& loop = std::get<Loop>(k.body.back().node);
    loop.body.push_back({Store{.buffer = 0, .index = r.index, .value = r.index}});
  };
  refused(uses_index_behind, "(loop_index) is used where it is not defined", "dominance");
}
