#include "models/import/ops/sizes/loop_trips.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/import/ops/sizes/affine_values.h"
#include "models/import/ops/sizes/dim_functions.h"
#include "models/import/ops/sizes/size_checks.h"

namespace lathe::importing {

namespace {

/// Returns the node of a value that is computed in a graph.
std::optional<ir::ValueId> computed_in(const Value& value, const ir::GraphBuilder& graph) {
  const Tensor* const tensor = value.computed();
  if (!tensor || &tensor->builder() != &graph) return std::nullopt;
  return tensor->value().id();
}

/// A state before iteration i: first + step * i.
struct Counter {
  Dim first = 0;
  std::int64_t step = 0;
};

std::optional<Counter> counter(AffineReader& reader, const LoopIteration& iteration, std::size_t i) {
  const Value& start = iteration.first[i];
  // A state of the graph has another number in each run than in the file.
  const bool is_state = start.numbers() && !start.constant();
  const std::optional<DimTensor> first = is_state ? std::nullopt : start.dims();
  const auto next = computed_in(iteration.results[i + 1], iteration.index.builder());
  if (!first || first->elements.size() != 1 || !is_small(first->elements[0]) || !next) return std::nullopt;
  const std::optional<AffineValue> value = reader.value(*next);
  const std::map<std::int32_t, std::int64_t> itself{{iteration.states[i].value().id().index, 1}};
  if (!value || value->factors != itself || !value->offset.value()) return std::nullopt;
  return Counter{.first = first->elements[0].unnamed(), .step = *value->offset.value()};
}

}  // namespace

std::optional<Countdown> countdown_of(const LoopIteration& iteration) {
  const auto condition = computed_in(iteration.results[0], iteration.index.builder());
  if (!condition) return std::nullopt;
  AffineReader reader(iteration.index.graph().ir());
  const std::optional<AffineValue> above = reader.positive_if(*condition);
  if (!above) return std::nullopt;
  Countdown found{.rest = above->offset, .step = 0};
  for (const auto& [argument, factor] : above->factors) {
    if (argument == iteration.index.value().id().index) {
      found.step -= factor;
      continue;
    }
    const auto state =
        std::ranges::find(iteration.states, argument, [](const Tensor& each) { return each.value().id().index; });
    if (state == iteration.states.end()) return std::nullopt;
    const auto of = counter(reader, iteration, static_cast<std::size_t>(state - iteration.states.begin()));
    if (!of) return std::nullopt;
    found.rest = found.rest + of->first * Dim(factor);
    found.step -= of->step * factor;
    if (!is_small(found.rest) || !is_small(Dim(found.step))) return std::nullopt;
  }
  return found.step > 0 ? std::optional(found) : std::nullopt;
}

bool begins(const Countdown& countdown, const Tensor& condition) {
  AffineReader reader(condition.graph().ir());
  const std::optional<AffineValue> above = reader.positive_if(condition.value().id());
  return above && above->factors.empty() && above->offset == countdown.rest + Dim(countdown.step);
}

std::optional<TripCount> trip_count(const Countdown& countdown, std::int64_t least) {
  const std::optional<Dim> last = rounded_up(countdown.rest, countdown.step);
  if (!last) return std::nullopt;
  const Dim trips = *last + Dim(1);
  switch (sign_of(trips - Dim(least))) {
    case Sign::zero:
    case Sign::positive:
    case Sign::not_negative: return TripCount{.trips = trips};
    case Sign::negative:
    case Sign::not_positive: return TripCount{.trips = least};
    case Sign::unknown: break;
  }
  return TripCount{.trips = trips, .least = least};
}

void require_trips(const OpCall& call, const TripCount& count) {
  require_at_least(call, *count.least, count.trips,
                   fmt::format("the loop is imported with {} iterations, and it has at least {}",
                               count.trips.to_string(), *count.least));
}

}  // namespace lathe::importing
