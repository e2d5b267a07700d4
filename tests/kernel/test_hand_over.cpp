#include <catch2/catch.hpp>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/access_search.h"
#include "ir/kernel/verify/access_site.h"
#include "tests/support/kernels/handed_sums.h"

/// Hand-overs from a pipeline's consumers to the last threads of a block.
using namespace lathe;
using namespace lathe::kernel;
using test::HandedSums;
using Mistake = HandedSums::Mistake;

namespace {

std::vector<float> run(const HandedSums& k) {
  std::vector<std::uint16_t> x = test::handed_operand(k);
  std::vector<float> y(static_cast<std::size_t>(k.turns * HandedSums::consumers), -1);
  const BoundBuffer buffers[] = {{x.data(), static_cast<std::int64_t>(x.size())},
                                 {y.data(), static_cast<std::int64_t>(y.size())}};
  interpret(k.build(), buffers, {});
  return y;
}

/// Builder and buffers of a kernel with a hand-over, for its bodies.
struct Parts {
  Builder& b;
  Buffer x, y, tile, sums;
  Var sum;
  Value t;
};
using Body = std::function<void(const Parts&)>;

void give(const Parts& p) { p.b.store(p.sums, p.t, p.b.get(p.sum)); }
void finish(const Parts& p) { p.b.store(p.y, p.t - 256, p.b.load(p.sums, p.t - 256)); }
void nothing(const Parts&) {}

/// A pipeline for 128 of 384 threads: `before`, a stage with `consume`, then `after`.
Kernel pipeline(const Body& before, const Body& consume, const Body& after, int threads = 384,
                const Body& produce = nothing) {
  Builder b("hand_over");
  const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  const Buffer tile = b.alloc(f32, 2048, Space::shared, "tile"), sums = b.alloc(f32, 128, Space::shared, "sums");
  const auto thread = [&](Value t) {
    stage_pipeline(b, 2, 128, [&] {
      b.for_loop(0, 2, 1, [&](Value) {
        const Parts p{b, x, y, tile, sums, b.var(b.constant(f32, 1)), t};
        before(p);
        pipeline_stage(b, [&](Value) { produce(p); }, [&](Value) { consume(p); });
        after(p);
      });
    });
  };
  b.for_loop(0, threads, 1, thread, LoopKind::thread_x);
  return test::round_trip(b.finish());
}

Body handed(const Body& give, const Body& finish, int threads = 128) {
  return [=](const Parts& p) { hand_over(p.b, threads, [&](Value) { give(p); }, [&](Value) { finish(p); }); };
}

}  // namespace

TEST_CASE("hand-over: the last threads of a block finish what the consumers give") {
  for (const int finishers : {128, 256}) {
    const HandedSums k{.turns = finishers / 64 - 1, .finishers = finishers};
    CHECK(run(k) == test::handed_result(k));
  }
  const HandedSums both{.together = true};
  CHECK(run(both) == test::handed_result(both));
  CHECK_THAT(print(both.build()), Catch::Contains("hand_over i4 of all to 128 threads of 40 registers give {"));
  CHECK_THAT(print(HandedSums().build()),
             Catch::Contains("hand_over i4 to 128 threads give {") && Catch::Contains("} finish {"));
}

TEST_CASE("hand-over: accesses that its threads do not wait for are detected") {
  const auto fails = [](Mistake mistake, const std::string& text) {
    CHECK_THROWS_WITH(run({.mistake = mistake}), Catch::Contains(text));
  };
  fails(Mistake::other_warpgroup, "gave, for warpgroup 0  [hand_over]");
  fails(Mistake::same_element, "in one turn  [race]");
  fails(Mistake::first_turn_only, "which turn 0 of a hand_over gave, in turn 1  [hand_over]");
  fails(Mistake::read_back, "which consumers gave to other threads  [hand_over]");
  fails(Mistake::written_outside, "which consumers gave to other threads  [hand_over]");
}

TEST_CASE("hand-overs that no GPU can run are rejected with the label of the rule") {
  const auto refused = [](const Body& before, const Body& consume, const Body& after, const std::string& label,
                          int threads = 384, const Body& produce = nothing) {
    CHECK_THROWS_WITH(pipeline(before, consume, after, threads, produce), Catch::Contains("[" + label + "]"));
  };
  const Body right = handed(give, finish);
  CHECK_NOTHROW(pipeline(nothing, nothing, right));
  CHECK_NOTHROW(pipeline(right, nothing, nothing));
  refused(nothing, right, nothing, "hand_over_context");
  refused(nothing, nothing, [&](const Parts& p) { p.b.if_(p.t < 8, [&] { right(p); }); }, "hand_over_context");
  refused(right, nothing, right, "pipeline_last");
  refused(nothing, nothing, right, "pipeline_last", 512);
  refused(nothing, nothing, right, "pipeline_last", 256);
  refused(nothing, nothing, handed(give, finish, 64), "pipeline_last");
  refused(nothing, nothing, right, "pipeline_last", 384,
          [](const Parts& p) { async_copy(p.b, p.tile, (p.t - 128) * 4, p.x, (p.t - 128) * 4); });
  refused(nothing, nothing, handed([](const Parts& p) { p.b.store(p.y, p.t, p.b.get(p.sum)); }, finish),
          "hand_over_bodies");
  refused(nothing, nothing, handed([](const Parts& p) { p.b.barrier(); }, finish), "hand_over_bodies");
  refused(nothing, nothing, handed([](const Parts& p) { p.b.set(p.sum, p.b.constant(f32, 0)); }, finish),
          "hand_over_bodies");
  refused(nothing, nothing, handed(give, [](const Parts& p) { p.b.store(p.sums, p.t - 256, p.b.constant(f32, 0)); }),
          "hand_over_bodies");
  refused(nothing, nothing, handed(give, [](const Parts& p) { p.b.store(p.y, p.t - 256, p.b.get(p.sum)); }),
          "hand_over_bodies");
  refused(nothing, nothing, handed(give, [](const Parts& p) { p.b.barrier(); }), "hand_over_bodies");
  const Body loads = [](const Parts& p) {
    const Value loaded = p.b.load(p.x, p.t);
    handed(give, [loaded](const Parts& in) { in.b.store(in.y, in.t - 256, loaded); })(p);
  };
  refused(nothing, nothing, loads, "pipeline_last");
}

TEST_CASE("hand-over: only the last threads access what `finish` accesses", "[access]") {
  Builder b("last");
  const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  const auto thread = [&](Value t) {
    stage_pipeline(b, 2, 128, [&] {
      b.for_loop(0, 3, 1, [&](Value turn) {
        pipeline_stage(b, [](Value) {}, [](Value) {});
        hand_over(b, 128, [](Value) {}, [&](Value) { b.store(y, t + turn * 1000, b.load(x, t)); });
      });
    });
  };
  b.for_loop(0, 384, 1, thread, LoopKind::thread_x);
  const Kernel kernel = b.finish();
  const auto reaches = [&](BufferId parameter, AccessKind kind, std::int64_t element) {
    std::vector<AccessSearch> found;
    for (const AccessSite& site : access_sites(kernel, parameter, kind))
      found.emplace_back(site, std::span<const std::int64_t>());
    REQUIRE(found.size() == 1);
    std::int64_t budget = 1000;
    return found[0].reaches(element, budget) == AccessSearch::Answer::yes;
  };
  for (const std::int64_t t : {256, 383})
    CHECK((reaches(0, AccessKind::load, t) && reaches(1, AccessKind::store, t)));
  for (const std::int64_t t : {255, 384}) CHECK_FALSE(reaches(0, AccessKind::load, t));
  CHECK(reaches(1, AccessKind::store, 2300));
  CHECK_FALSE(reaches(1, AccessKind::store, 2100));
}
