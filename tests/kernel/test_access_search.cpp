#include <catch2/catch.hpp>

#include <functional>
#include <random>
#include <set>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/kernel/verify/access_search.h"
#include "ir/kernel/verify/parameter_use.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/kernels/tile_blocks.h"
#include "tests/support/programs/first_threads.h"

/// Elements that a kernel's statements access, compared with those that the interpreter writes.
using namespace lathe;
using namespace lathe::kernel;
using Answer = AccessSearch::Answer;
using Dims = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t plenty = 1'000'000;

std::vector<AccessSearch> searches(const Kernel& kernel, BufferId parameter, const Dims& dims,
                                   AccessKind kind = AccessKind::store) {
  std::vector<AccessSearch> found;
  for (const AccessSite& site : access_sites(kernel, parameter, kind)) found.emplace_back(site, dims);
  return found;
}

/// Returns the best answer of all sites.
Answer ask(std::vector<AccessSearch>& sites, std::int64_t element, std::int64_t& budget) {
  Answer best = Answer::no;
  for (AccessSearch& site : sites) best = std::max(best, site.reaches(element, budget));
  return best;
}

/// Returns the elements of y, the only buffer, that the kernel writes.
std::set<std::int64_t> written(const Kernel& kernel, const Dims& dims, std::int64_t elements) {
  std::vector<float> y(static_cast<std::size_t>(elements), -1);
  const BoundBuffer bound[] = {{y.data(), elements}};
  interpret(kernel, bound, dims);
  std::set<std::int64_t> found;
  for (std::int64_t i = 0; i < elements; ++i)
    if (y[static_cast<std::size_t>(i)] != -1) found.insert(i);
  return found;
}

/// Checks every element from 0 on, and values around loop bounds.
void check_all(const Kernel& kernel, const Dims& dims, std::int64_t elements) {
  const std::set<std::int64_t> expected = written(kernel, dims, elements);
  CHECK(!expected.empty());
  std::vector<AccessSearch> sites = searches(kernel, 0, dims);
  std::int64_t budget = plenty;
  for (std::int64_t i = 0; i < elements; ++i) {
    CAPTURE(i, dims);
    CHECK(ask(sites, i, budget) == (expected.contains(i) ? Answer::yes : Answer::no));
  }
  std::mt19937_64 random(7);
  for (AccessSearch& site : sites)
    for (std::size_t from = 0; from <= site.counters(); ++from)
      for (int n = 0; n < 20; ++n)
        if (const auto end = site.at_end(from, random())) {
          CHECK(end->certain);
          CHECK(expected.contains(end->element));
        }
}

/// Returns a kernel with the buffer y and this body.
Kernel kernel_of(const std::function<void(Builder&, Buffer)>& body) {
  Builder b("k");
  const Buffer y = b.buffer("y", f32, Access::write);
  body(b, y);
  return test::round_trip(b.finish(), test::first_threads_family);
}

/// Columns of each row by vectors, the last one masked; task numbers count columns within rows.
Kernel row_blocks(int left_out) {
  return kernel_of([&](Builder& b, Buffer y) {
    const Value rows = b.dim("rows"), columns = b.dim("columns"), per_row = b.ceil_div(columns, 24);
    b.parallel_for(0, b.ceil_div(rows, 3) * per_row, 1, [&](Value task) {
      const Value first = task / per_row * 3, start = task % per_row * 24;
      b.for_loop(first, min(first + 3, rows), 1, [&](Value row) {
        const Value end = min(start + 24, columns) - left_out;
        b.for_loop(start, end, 8, [&](Value column) {
          b.store(y, row * columns + column, b.constant(f32, 1, 8), b.tail_mask(end - column, 8));
        });
      });
    });
  });
}

}  // namespace

TEST_CASE("access search: blocks, remainders and masked vectors", "[access]") {
  for (const Dims& dims : {Dims{1, 1}, Dims{7, 24}, Dims{10, 61}, Dims{3, 8}}) {
    check_all(row_blocks(0), dims, dims[0] * dims[1]);
    if (dims[1] > 3) check_all(row_blocks(2), dims, dims[0] * dims[1]);
  }
}

TEST_CASE("access search: columns, permuted digits, strides and scattered lanes", "[access]") {
  check_all(kernel_of([](Builder& b, Buffer y) {
              const Value n = b.dim("n"), m = b.dim("m");
              b.for_loop(0, n * m, 1, [&](Value i) { b.store(y, i % m * n + i / m, b.constant(f32, 1)); });
            }),
            {13, 9}, 13 * 9 + 5);
  check_all(kernel_of([](Builder& b, Buffer y) {
              const Value n = b.dim("n");
              b.parallel_for(0, n * 6 - 1, 1, [&](Value i) {  // the last row is incomplete
                const Value a = i % 2, c = i / 2 % 3, r = i / 6;
                b.store_strided(y, r * 24 + a * 12 + c, 3, b.constant(f32, 1, 4));
              });
            }),
            {5}, 24 * 5);
  check_all(kernel_of([](Builder& b, Buffer y) {
              b.for_loop(3, 40, 7, [&](Value i) {
                const Value lanes = b.ramp(i, 8, b.index(5));
                b.scatter(y, lanes, b.constant(f32, 1, 8), lanes < b.broadcast(b.index(50), 8));
              });
            }),
            {}, 60);
}

TEST_CASE("access search: branches, selected bounds and 32-bit integers", "[access]") {
  check_all(kernel_of([](Builder& b, Buffer y) {
              const Value n = b.dim("n");
              b.for_loop(0, n, 1, [&](Value i) {
                b.if_(
                    equal(i % 3, i % 5), [&] { b.store(y, i, b.constant(f32, 1)); },
                    [&] {
                      const Value narrow = b.cast(i, i32);
                      const Value from = b.select(i < 10, i, i + 1);
                      b.for_loop(from, i + 1, 1,
                                 [&](Value j) { b.store(y, b.cast(narrow, i64) + (j - i), b.constant(f32, 1)); });
                    });
              });
            }),
            {31}, 31);
}

TEST_CASE("access search: GPU threads and blocks", "[access]") {
  check_all(kernel_of([](Builder& b, Buffer y) {
              const Value n = b.dim("n");
              b.for_loop(
                  0, b.ceil_div(n, 64), 1,
                  [&](Value block) {
                    b.for_loop(
                        0, 32, 1,
                        [&](Value thread) {
                          b.for_loop(block * 64 + thread, min(block * 64 + 64, n), 32,
                                     [&](Value i) { b.store(y, i, b.constant(f32, 1)); });
                        },
                        LoopKind::thread_x);
                  },
                  LoopKind::block_x);
            }),
            {150}, 150);
}

TEST_CASE("access search: a tile_mma block", "[access]") {
  const Kernel kernel = kernel_of([](Builder& b, Buffer y) {
    const Buffer x = b.alloc(bf16, 32 * 32, Space::stack);
    tile_mma(b, {.rows = 16, .columns = 32}, {y, 5, 40}, {x, 0, 32}, {x, 0, 64}, 32);
  });
  std::vector<AccessSearch> sites = searches(kernel, 0, {});
  REQUIRE(sites.size() == 1);
  std::int64_t budget = plenty;
  for (std::int64_t i = 0; i < 16 * 40; ++i)
    CHECK(ask(sites, i, budget) == (i >= 5 && (i - 5) % 40 < 32 ? Answer::yes : Answer::no));
}

TEST_CASE("access search: data-dependent accesses are undecided", "[access]") {
  Builder b("k");
  const Buffer y = b.buffer("y", f32, Access::write), x = b.buffer("x", i64, Access::read);
  const kernel::Var on = b.var(b.constant_int(boolean, 1));
  b.for_loop(0, 10, 1, [&](Value i) {
    b.store(y, b.load(x, i), b.constant(f32, 1));
    b.if_(b.get(on), [&] { b.store(y, i, b.constant(f32, 1)); });
  });
  const Kernel kernel = test::round_trip(b.finish());
  std::vector<AccessSearch> sites = searches(kernel, 0, {});
  REQUIRE(sites.size() == 2);
  std::int64_t budget = plenty;
  CHECK(sites[0].reaches(1000, budget) == Answer::open);
  CHECK(!sites[0].at_end(0, 1));
  CHECK(sites[1].reaches(9, budget) == Answer::open);
  CHECK(sites[1].reaches(10, budget) == Answer::no);
  const auto end = sites[1].at_end(0, 1);
  REQUIRE(end);
  CHECK(end->element == 9);
  CHECK(!end->certain);
  std::vector<AccessSearch> loads = searches(kernel, 1, {}, AccessKind::load);
  REQUIRE(loads.size() == 1);
  CHECK(ask(loads, 9, budget) == Answer::yes);
  CHECK(ask(loads, 10, budget) == Answer::no);
}

TEST_CASE("access search: large sizes need few steps, and a small budget leaves accesses undecided", "[access]") {
  const Kernel kernel = row_blocks(0);
  const Dims dims = {1'000'003, 50'257};
  std::vector<AccessSearch> sites = searches(kernel, 0, dims);
  std::mt19937_64 random(3);
  for (int n = 0; n < 50; ++n) {
    std::int64_t budget = 400;
    CHECK(ask(sites, static_cast<std::int64_t>(random() % (1'000'003LL * 50'257)), budget) == Answer::yes);
  }
  std::int64_t budget = 400;
  CHECK(ask(sites, 1'000'003LL * 50'257, budget) == Answer::no);
  budget = 3;
  CHECK(ask(sites, 77'777, budget) == Answer::open);
}

TEST_CASE("access search: producer threads of a pipeline run only the producer code", "[access]") {
  const Kernel kernel = kernel_of([](Builder& b, Buffer y) {
    b.for_loop(
        0, 1, 1,
        [&](Value) {
          b.for_loop(
              0, 160, 1,
              [&](Value thread) {
                stage_pipeline(b, 2, 128, [&] {
                  b.for_loop(0, 1, 1, [&](Value) { pipeline_stage(b, [](Value) {}, [](Value) {}); });
                  b.store(y, thread, b.constant(f32, 1));
                });
              },
              LoopKind::thread_x);
        },
        LoopKind::block_x);
  });
  std::vector<AccessSearch> stores = searches(kernel, 0, {});
  std::int64_t budget = plenty;
  CHECK(ask(stores, 127, budget) == Answer::yes);
  CHECK(ask(stores, 128, budget) == Answer::no);
}

TEST_CASE("access search: threads outside the first ones of an intrinsic region skip its body", "[access]") {
  const Kernel kernel = kernel_of([](Builder& b, Buffer y) {
    const auto thread = [&](Value t) {
      b.region(test::first_threads_record, {3}, {[&](Value) { b.store(y, t, b.constant(f32, 1)); }});
    };
    b.for_loop(0, 8, 1, thread, LoopKind::thread_x);
  });
  std::vector<AccessSearch> stores = searches(kernel, 0, {});
  std::int64_t budget = plenty;
  CHECK(ask(stores, 2, budget) == Answer::yes);
  CHECK(ask(stores, 3, budget) == Answer::no);
}

TEST_CASE("parameter use: loads, stores and checks, independent of declarations", "[access]") {
  Builder b("k");
  const Buffer x = b.buffer("x", f32, Access::read_write), y = b.buffer("y", f32, Access::read_write),
               z = b.buffer("z", f32, Access::read_write), p = b.buffer("p", f32, Access::read);
  b.store(y, 0, b.load(x, 0));
  b.prefetch(p, 0);
  b.check(b.load(x, 1) < b.load(z, 0), 3);
  b.store(z, 0, b.constant(f32, 1));
  const ParameterUse use = parameter_use(test::round_trip(b.finish()));
  CHECK(use.loaded == std::vector<bool>{true, false, true, false});
  CHECK(use.stored == std::vector<bool>{false, true, true, false});
  CHECK(use.largest_code == 3);
}
