#include "frontend/train/optimizers/muon.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/option_faults.h"
#include "ir/support/error.h"

namespace lathe {

namespace {

/// Returns the rows and columns of a matrix.
std::pair<std::int64_t, std::int64_t> matrix_sizes(const ParameterUpdate& update) {
  if (update.shape().rank() != 2)
    throw UserError(update.step().builder().location(), "optimizer",
                    fmt::format("Muon updates matrices, not {} {}", update.name(), update.shape().to_string()),
                    "optimizer_rule", "put it into a group with another optimizer, such as AdamW");
  const std::vector<std::int64_t> sizes = update.sizes();
  return {sizes[0], sizes[1]};
}

/// Returns the direction of an update before it is orthogonalized, and advances the momentum.
Tensor momentum_of(const Muon& muon, ParameterUpdate& update) {
  const Tensor buffer = update.state("momentum"), g = update.gradient();
  const Tensor moved = buffer + (g - buffer) * (1 - muon.momentum);
  update.set_state(buffer, moved);
  return muon.nesterov ? g + (moved - g) * muon.momentum : moved;
}

/// Newton-Schulz iterations of x [n, rows, columns] with rows <= columns.
Tensor orthogonalized(const Muon& muon, Tensor x) {
  x = x / maximum(sqrt((x * x).sum({1, 2}, true)), muon.eps);
  const auto [a, b, c] = muon.coefficients;
  for (int i = 0; i < muon.iterations; ++i) {
    const Tensor gram = matmul(x, x.transpose(1, 2));
    x = x * a + matmul(gram * b + matmul(gram, gram) * c, x);
  }
  return x;
}

/// Updates all matrices of one size together.
void update_matrices(const Muon& muon, const std::vector<ParameterUpdate*>& updates, std::int64_t rows,
                     std::int64_t columns) {
  std::vector<Tensor> directions;
  for (ParameterUpdate* update : updates) directions.push_back(momentum_of(muon, *update));
  Tensor all = stack(directions, 0);
  if (rows > columns) all = all.transpose(1, 2);
  all = orthogonalized(muon, all);
  if (rows > columns) all = all.transpose(1, 2);
  const double r = static_cast<double>(rows), c = static_cast<double>(columns);
  const double factor =
      muon.scale == Muon::Scale::original ? std::sqrt(std::max(1.0, r / c)) : 0.2 * std::sqrt(std::max(r, c));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    ParameterUpdate& update = *updates[i];
    const Tensor direction = all.select(0, static_cast<std::int64_t>(i));
    const Tensor rate = update.rounded(update.exact_rate() * factor);
    update.set_parameter(detail::decayed(update, muon.weight_decay) - direction * rate);
  }
}

}  // namespace

Muon::operator Optimizer() const {
  const auto rule = [muon = *this](std::span<ParameterUpdate> updates) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<ParameterUpdate*>> by_size;
    for (ParameterUpdate& update : updates) by_size[matrix_sizes(update)].push_back(&update);
    for (const auto& [sizes, members] : by_size) update_matrices(muon, members, sizes.first, sizes.second);
  };
  return Optimizer::built_in(
      "Muon", lr, Optimizer::GroupRule(rule),
      detail::first_of({detail::unless_share("momentum", momentum),
                        detail::unless_positive("weight_decay", weight_decay), detail::unless_positive("eps", eps),
                        detail::unless_at_least("iterations", iterations, 1),
                        detail::unless_positive("the first coefficient", coefficients[0])}));
}

}  // namespace lathe
