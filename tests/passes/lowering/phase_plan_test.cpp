#include <catch2/catch.hpp>

#include <vector>

#include "ir/kernel/text/parser.h"
#include "passes/gpu/join/phase_plan.h"

/// How the phases of a kernel wait for each other: at grid barriers, or for elements of the buffers that they read.
using namespace lathe;
using gpu::PhaseAccess;
using gpu::PhaseAccesses;
using gpu::PhasePlan;
using gpu::PlannedPhase;
using kernel::Access;

namespace {

PhaseAccess reads(int buffer, std::int64_t loads = 1) {
  return {.buffer = buffer, .access = Access::read, .can_be_awaited = true, .loads = loads};
}
PhaseAccess writes(int buffer) { return {.buffer = buffer, .access = Access::write, .can_be_awaited = true}; }
PhaseAccess updates(int buffer) { return {.buffer = buffer, .access = Access::read_write}; }

PhasePlan planned(const std::vector<PhaseAccesses>& phases, const std::vector<bool>& is_temporary) {
  return gpu::plan_phases(phases, is_temporary);
}

/// Four phases, each of which reads what the one before wrote.
std::vector<PhaseAccesses> chain(const PhaseAccess& third_read) {
  return {{.of = {writes(0)}},
          {.of = {reads(0), writes(1)}},
          {.of = {writes(2), third_read}},
          {.of = {reads(2), writes(3)}}};
}

}  // namespace

TEST_CASE("phase plan: phases await elements, after one barrier that follows their clear") {
  const PhasePlan plan = planned(chain(reads(1)), {true, true, true, false});
  CHECK(plan.cleared == std::vector<int>{0, 1, 2});
  CHECK(plan.phases == std::vector<PlannedPhase>{{0, false, 1}, {1, false, 3}, {2, false, 3}, {3, false, 1}});
  CHECK(plan.barriers() == 1);
}

TEST_CASE("phase plan: a barrier for many loads, for other memory, and for what intrinsics access") {
  const std::vector<bool> temporary{true, true, true, false};
  const std::vector<PlannedPhase> expected{{0, false, 1}, {1, false, 1}, {2, true, 1}, {3, false, 1}};
  CHECK(planned(chain(reads(1, 4)), temporary).barriers() == 1);
  const PhasePlan many = planned(chain(reads(1, 5)), temporary);
  CHECK(many.cleared == std::vector<int>{0, 2});
  CHECK(many.phases == expected);
  CHECK(planned(chain(reads(1)), {true, false, true, false}).phases == expected);
  PhaseAccess by_intrinsic = reads(1);
  by_intrinsic.can_be_awaited = false;
  CHECK(planned(chain(by_intrinsic), temporary).phases == expected);
  // A workspace, which its only writer reads too.
  std::vector<PhaseAccesses> workspace = chain(reads(1));
  workspace[1].of[1] = updates(1);
  CHECK(planned(workspace, temporary).phases == expected);
  // A barrier for the elements of two phases saves none.
  const std::vector<PhaseAccesses> two{{.of = {writes(0)}}, {.of = {reads(0), writes(1)}}};
  CHECK(planned(two, {true, false}).phases == std::vector<PlannedPhase>{{0, false, 0}, {1, true, 0}});
}

TEST_CASE("phase plan: what a later phase overwrites is not awaited") {
  const std::vector<PhaseAccesses> in_place{{.of = {writes(0)}},
                                            {.of = {updates(0)}},
                                            {.of = {reads(0), writes(1)}},
                                            {.of = {reads(1), writes(2)}},
                                            {.of = {reads(2), writes(3)}}};
  const PhasePlan plan = planned(in_place, {true, true, true, false});
  CHECK(plan.cleared == std::vector<int>{1, 2});
  CHECK(plan.phases ==
        std::vector<PlannedPhase>{{0, false, 0}, {1, true, 0}, {2, true, 2}, {3, false, 3}, {4, false, 1}});
}

TEST_CASE("phase plan: a short phase that nothing waits for runs after the next barrier") {
  // Buffer 4 is a cache: phase 1 reads it, and phase 2 appends to it.
  std::vector<PhaseAccesses> phases{{.of = {writes(0)}},
                                    {.of = {reads(0), reads(4), writes(1)}},
                                    {.of = {reads(0), writes(4)}, .may_be_late = true},
                                    {.of = {reads(1), writes(2)}},
                                    {.of = {reads(2, 9), writes(3)}},
                                    {.of = {reads(3), writes(5)}}};
  const std::vector<bool> temporary{true, true, true, true, false, false};
  const PhasePlan plan = planned(phases, temporary);
  CHECK(plan.cleared == std::vector<int>{0, 1, 3});
  CHECK(plan.phases == std::vector<PlannedPhase>{
                           {0, false, 1}, {1, false, 5}, {3, false, 1}, {4, true, 2}, {2, false, 0}, {5, false, 1}});
  // Without such a barrier it has one of its own, at the end.
  phases[4].of[0].loads = 1;
  CHECK(planned(phases, temporary).phases.back() == PlannedPhase{2, true, 0});
  // A phase that another one waits for is not late.
  phases[5].of.push_back(reads(4));
  const PhasePlan waited = planned(phases, temporary);
  CHECK(waited.phases[2] == PlannedPhase{2, true, 0});
  CHECK(waited.phases.back().follows_barrier);
}

TEST_CASE("phase plan: loads of a thread, one after the other") {
  const kernel::Kernel kernel = kernel::parse_kernel(R"(kernel @k(x: read f32, w: read f32, y: write f32; n) {
  for i0 in 0..n step 64 @block.x {
    for i1 in 0..64 step 1 @thread.x {
      %0 = lt i1, n : bool
      if %0 {
        %1 = load x[i1] : f32x8
      } else {
        %2 = load x[i1] : f32
      }
      for i2 in i1..768 step 256 @serial {
        %3 = load x[i2] : f32x4
        for i3 in 0..2 step 1 @unroll {
          %4 = load x[i3] : f32
        }
      }
      for i4 in 0..n step 1 @serial {
        %5 = load w[i4] : f32
      }
      store y[i1] = 0:f32
    }
  }
})",
                                                     "loads");
  CHECK(gpu::loads_of_thread(kernel, 0) == 1 + 3 * (1 + 2));
  CHECK(gpu::loads_of_thread(kernel, 1) > 100);
  CHECK(gpu::loads_of_thread(kernel, 2) == 0);
}

TEST_CASE("phase plan: loads that nothing uses before the next one overlap, and known bounds of loops count") {
  const kernel::Kernel kernel = kernel::parse_kernel(R"(kernel @k(x: read f32, w: read f32, y: write f32; n) {
  for i0 in 0..n step 64 @block.x {
    for i1 in 0..64 step 1 @thread.x {
      %0 = load x[i1] : f32x4
      %1 = load w[i1] : f32x4
      %2 = load x[i0] : f32x4
      %3 = add %0, %2 : f32x4
      %4 = load x[n] : f32x4
      store y[i1] = %3
      %5 = min n, 512 : i64
      for i2 in 0..%5 step 256 @serial {
        %6 = load w[i2] : f32x4
      }
      %7 = add i1, 2048 : i64
      for i3 in %7..n step 256 @serial {
        %8 = load w[i3] : f32x4
      }
    }
  }
})",
                                                     "overlapped");
  CHECK(gpu::loads_of_thread(kernel, 0) == 2);
  CHECK(gpu::loads_of_thread(kernel, 1) == 1 + 512 / 256);
}
