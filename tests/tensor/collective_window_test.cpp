#include "ir/tensor/mesh/collective_window.h"

#include <catch2/catch.hpp>

/// How early communication starts before its users, and how late it ends after its producers.
namespace lathe::ir::test {

namespace {

using Times = std::vector<CollectiveTimes>;

std::vector<int> starts(Times times) {
  limit_prefetch(times);
  std::vector<int> found;
  for (const CollectiveTimes& each : times) found.push_back(each.start);
  return found;
}

std::vector<int> ends(Times times) {
  limit_backlog(times);
  std::vector<int> found;
  for (const CollectiveTimes& each : times) found.push_back(each.done);
  return found;
}

}  // namespace

TEST_CASE("collective window: a gather is in flight while the previous one is used") {
  CHECK(starts({{0, 10, 8}, {0, 20, 8}, {0, 30, 8}}) == std::vector<int>{0, 10, 20});
  // A small one is in flight along with a large one, and the next starts as soon as that is used.
  CHECK(starts({{0, 10, 4}, {0, 20, 2}, {0, 30, 2}}) == std::vector<int>{0, 10, 11});
  CHECK(starts({{0, 10, 2}, {0, 20, 2}, {0, 30, 4}, {0, 40, 1}}) == std::vector<int>{0, 0, 20, 30});
}

TEST_CASE("collective window: next to a large value in use, small values are prefetched but not another large one") {
  CHECK(starts({{0, 10, 9, 60}, {0, 20, 1, 30}, {0, 40, 1, 50}, {0, 60, 1, 70}}) == std::vector<int>{0, 10, 10, 31});
  // One starts while the previous one of its size is used, although a small one is used in between.
  CHECK(starts({{0, 10, 400}, {0, 12, 1}, {0, 30, 399}}) == std::vector<int>{0, 10, 10});
  CHECK(starts({{0, 10, 400}, {0, 12, 10}, {0, 30, 390}}) == std::vector<int>{0, 10, 11});
  // Many that are read until the end start as early as the network allows.
  CHECK(starts({{0, 10, 8, 40}, {0, 20, 8, 40}, {0, 30, 8, 40}}) == std::vector<int>{0, 10, 20});
}

TEST_CASE("collective window: a gather starts when its value is available") {
  CHECK(starts({{0, 10, 8}, {15, 20, 8}, {0, 30, 8}}) == std::vector<int>{0, 15, 20});
  CHECK(starts({{0, 30, 8}, {0, 10, 8}}) == std::vector<int>{10, 0});  // ordered by use, not by position
  CHECK(starts({}).empty());
}

TEST_CASE("collective window: a scatter ends before the next starts unless both fit") {
  CHECK(ends({{5, 90, 8}, {10, 90, 8}, {20, 90, 8}}) == std::vector<int>{10, 20, 90});
  CHECK(ends({{5, 90, 2}, {10, 90, 2}, {20, 90, 4}, {30, 90, 1}}) == std::vector<int>{20, 20, 30, 90});
  CHECK(ends({{5, 7, 8}, {10, 90, 8}}) == std::vector<int>{7, 90});  // its result is read earlier
}

}  // namespace lathe::ir::test
