#include "frontend/train/optimizers/soap.h"

#include <map>
#include <string>
#include <vector>

#include "frontend/ops/factorizations.h"
#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/option_faults.h"

namespace lathe {

namespace {

/// A dim of a parameter with its states. `basis` is that of the step before.
struct Side {
  int dim;
  std::int64_t size;
  Tensor gram_state, basis, gram = {}, next_basis = {}, order = {};
};
struct Preconditioned {
  ParameterUpdate* update;
  std::vector<Side> sides = {};
};

/// Values that all parameters of the group share.
struct When {
  Tensor first;    ///< bool: this is the first step
  Tensor moves;    ///< bool: the bases move
  Tensor counted;  ///< f64: updates of the moments, at least 1
};

/// Returns the einsum letters of a tensor with dim d called `letter`.
std::string letters(int rank, int d, char letter) {
  std::string found = std::string("abcdefghijkl").substr(0, static_cast<std::size_t>(rank));
  found[static_cast<std::size_t>(d)] = letter;
  return found;
}

/// The products of g with itself over all dims but d: [size, size].
Tensor gram_of(const Tensor& g, int d) {
  return einsum(letters(g.rank(), d, 'x') + "," + letters(g.rank(), d, 'y') + "->xy", {g, g});
}

/// Multiplies each dim with a basis by it: into the basis, or back.
Tensor project(Tensor x, const std::vector<Side>& sides, Tensor Side::* basis, bool back) {
  for (const Side& side : sides)
    x = einsum(letters(x.rank(), side.dim, 'x') + (back ? ",yx->" : ",xy->") + letters(x.rank(), side.dim, 'y'),
               {x, side.*basis});
  return x;
}

Preconditioned declare_sides(const SOAP& soap, ParameterUpdate& update) {
  Preconditioned found{.update = &update};
  const std::vector<std::int64_t> sizes = update.sizes();
  if (sizes.size() < 2) return found;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > soap.largest_dim) continue;
    const Shape square{sizes[d], sizes[d]};
    found.sides.push_back({.dim = static_cast<int>(d),
                           .size = sizes[d],
                           .gram_state = update.state("gram" + std::to_string(d), update.dtype(), square),
                           .basis = update.state("basis" + std::to_string(d), update.dtype(), square)});
  }
  return found;
}

/// Moves the mean products, and computes the next bases of all sides of one size together.
void move_bases(const SOAP& soap, const When& when, const std::vector<std::pair<Preconditioned*, Side*>>& members) {
  std::vector<Tensor> grams, bases;
  for (const auto& [parameter, side] : members) {
    const Tensor products = gram_of(parameter->update->gradient(), side->dim);
    side->gram = side->gram_state + (products - side->gram_state) * (1 - soap.shampoo_beta.value_or(soap.beta2));
    grams.push_back(side->gram), bases.push_back(side->basis);
  }
  const Tensor gram = stack(grams, 0), basis = stack(bases, 0), moved = matmul(gram, basis);
  const Tensor order = argsort((basis * moved).sum(1), 1, true);  // of the estimated eigenvalues
  const Tensor sorted = take_along(moved, order.unsqueeze(1).expand(moved.shape()), 2);
  const Tensor next = eigenvectors(gram, when.first, orthonormal_basis(sorted, when.moves, basis));
  for (std::size_t i = 0; i < members.size(); ++i) {
    Side& side = *members[i].second;
    side.next_basis = next.select(0, static_cast<std::int64_t>(i));
    side.order = order.select(0, static_cast<std::int64_t>(i));
  }
}

void add_soap_step(const SOAP& soap, const When& when, Preconditioned& parameter) {
  ParameterUpdate& update = *parameter.update;
  const Tensor p = update.parameter(), m = update.state("m"), v = update.state("v");
  const Tensor g = project(update.gradient(), parameter.sides, &Side::basis, false);
  const Tensor m1 = m * soap.beta1 + g * (1 - soap.beta1), v1 = v * soap.beta2 + g * g * (1 - soap.beta2);
  Tensor direction = project(m1 / (sqrt(v1) + soap.eps), parameter.sides, &Side::basis, true);
  if (soap.normalize) direction = direction / (sqrt((direction * direction).mean()) + 1e-30);
  const auto correction = [&](double beta) { return 1.0 - pow(beta, when.counted); };
  const Tensor step_size = update.exact_rate() * sqrt(correction(soap.beta2)) / correction(soap.beta1);
  Tensor p1 = p - direction * update.rounded(step_size);
  if (update.decays() && soap.weight_decay != 0)
    p1 = p1 * update.rounded(1.0 - update.exact_rate() * soap.weight_decay);
  update.set_parameter(where(when.first, p, p1));

  const Tensor turned =
      project(project(m1, parameter.sides, &Side::basis, true), parameter.sides, &Side::next_basis, false);
  Tensor sorted = v1;
  for (const Side& side : parameter.sides) sorted = gather(sorted, side.order, side.dim);
  update.set_state(m, where(when.first, m, where(when.moves, turned, m1)));
  update.set_state(v, where(when.first, v, where(when.moves, sorted, v1)));
  for (const Side& side : parameter.sides) {
    update.set_state(side.gram_state, side.gram);
    update.set_state(side.basis, side.next_basis);
  }
}

void add_soap_steps(const SOAP& soap, std::span<ParameterUpdate> updates) {
  const Tensor counted = updates.front().step() - 1.0;  // as soap.py: the first step counts no update
  const Tensor share = counted / static_cast<double>(soap.frequency), first = counted == 0.0;
  const When when{.first = first, .moves = (share == floor(share)) & ~first, .counted = maximum(counted, 1.0)};
  std::vector<Preconditioned> parameters;
  for (ParameterUpdate& update : updates) parameters.push_back(declare_sides(soap, update));
  std::map<std::int64_t, std::vector<std::pair<Preconditioned*, Side*>>> by_size;
  for (Preconditioned& parameter : parameters)
    for (Side& side : parameter.sides) by_size[side.size].emplace_back(&parameter, &side);
  for (const auto& [size, members] : by_size) move_bases(soap, when, members);
  for (Preconditioned& parameter : parameters) add_soap_step(soap, when, parameter);
}

}  // namespace

SOAP::operator Optimizer() const {
  const auto rule = [soap = *this](std::span<ParameterUpdate> updates) { add_soap_steps(soap, updates); };
  using namespace detail;
  return Optimizer::built_in("SOAP", lr, Optimizer::GroupRule(rule),
                             first_of({adam_fault(*this), unless_share("shampoo_beta", shampoo_beta.value_or(0)),
                                       unless_at_least("frequency", static_cast<double>(frequency), 1),
                                       unless_at_least("largest_dim", static_cast<double>(largest_dim), 0)}));
}

}  // namespace lathe
