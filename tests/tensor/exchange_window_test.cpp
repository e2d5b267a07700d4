#include "ir/tensor/exchange_window.h"

#include <catch2/catch.hpp>

/// How far exchanges run ahead of their readers and stay behind their makers.
namespace lathe::ir::test {

namespace {

using Times = std::vector<ExchangeTimes>;

std::vector<int> starts(Times times) {
  limit_prefetch(times);
  std::vector<int> found;
  for (const ExchangeTimes& each : times) found.push_back(each.start);
  return found;
}

std::vector<int> ends(Times times) {
  limit_backlog(times);
  std::vector<int> found;
  for (const ExchangeTimes& each : times) found.push_back(each.done);
  return found;
}

}  // namespace

TEST_CASE("exchange window: a gather comes while the one before it is used") {
  CHECK(starts({{0, 10, 8}, {0, 20, 8}, {0, 30, 8}}) == std::vector<int>{0, 10, 20});
  // Several small ones are as many bytes as a large one.
  CHECK(starts({{0, 10, 4}, {0, 20, 2}, {0, 30, 2}}) == std::vector<int>{0, 10, 10});
  CHECK(starts({{0, 10, 2}, {0, 20, 2}, {0, 30, 4}, {0, 40, 1}}) == std::vector<int>{0, 0, 20, 30});
}

TEST_CASE("exchange window: a gather whose value is made late starts then") {
  CHECK(starts({{0, 10, 8}, {15, 20, 8}, {0, 30, 8}}) == std::vector<int>{0, 15, 20});
  CHECK(starts({{0, 30, 8}, {0, 10, 8}}) == std::vector<int>{10, 0});  // by use, not by place
  CHECK(starts({}).empty());
}

TEST_CASE("exchange window: a scatter is over before the next but what fits beside it starts") {
  CHECK(ends({{5, 90, 8}, {10, 90, 8}, {20, 90, 8}}) == std::vector<int>{10, 20, 90});
  CHECK(ends({{5, 90, 2}, {10, 90, 2}, {20, 90, 4}, {30, 90, 1}}) == std::vector<int>{20, 20, 30, 90});
  CHECK(ends({{5, 7, 8}, {10, 90, 8}}) == std::vector<int>{7, 90});  // whose result is read before
}

}  // namespace lathe::ir::test
