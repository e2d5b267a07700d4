#include "tests/attention/variants/variant.h"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <random>
#include <set>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"

namespace lathe::test {

namespace {

constexpr int layouts = static_cast<int>(Layout::one_key_head) + 1,
              scales = static_cast<int>(Scale::negated_twice) + 1, masks = static_cast<int>(Mask::tiny_fill) + 1,
              normalisations = static_cast<int>(Normalisation::after_the_product) + 1,
              extras = static_cast<int>(Extra::cross) + 1, type_kinds = static_cast<int>(Types::f32_softmax) + 1;

DType dtype_of(Types types) {
  switch (types) {
    case Types::f64: return f64;
    case Types::bf16:
    case Types::f32_softmax: return bf16;
    case Types::f16: return f16;
    case Types::f32: break;
  }
  return f32;
}

/// Whether the rows of the result are in the same dim as those of the scores, the second to last.
bool keeps_rows_in_place(Layout layout) {
  switch (layout) {
    case Layout::heads:
    case Layout::keys_transposed:
    case Layout::per_head:
    case Layout::grouped_expand:
    case Layout::grouped_repeat:
    case Layout::one_key_head:
    case Layout::batch_only:
    case Layout::flat: return true;
    default: return false;
  }
}

/// A literal mask has a fixed size, which cross-attention does not. Weights that are normalized late cannot be
/// returned or dropped out.
bool possible(const PatternVariant& s) {
  if (has_literal(s) && s.extra == Extra::cross) return false;
  if (s.normalisation != Normalisation::after_the_product) return true;
  return keeps_rows_in_place(s.layout) && s.extra != Extra::weights_returned && s.extra != Extra::dropout;
}

class Builder {
 public:
  Builder(const PatternVariant& variant, DType dtype)
      : variant_(variant), dtype_(dtype), sizes_(sizes_of(variant)), g_("attention") {}

  ir::Graph run() {
    const MakeInput input = [this](std::string_view name, std::optional<DType> dtype, const Shape& shape) {
      auto& inputs = dtype ? masks_ : inputs_;
      const auto known = inputs.find(name);
      if (known != inputs.end()) return known->second;
      return inputs.emplace(std::string(name), g_.input(name, dtype.value_or(dtype_), shape)).first->second;
    };
    std::vector<Tensor> results;
    for (const LaidOut& one : lay_out(variant_, sizes_, input)) {
      const bool wide = variant_.types == Types::f32_softmax && dtype_ == bf16;
      const Tensor scores = wide ? one.scores.to(f32) : one.scores;
      if (variant_.extra == Extra::scores_returned) g_.output(fmt::format("scores{}", results.size()), scores);
      results.push_back(weighted(mask_scores(variant_, sizes_, g_, input, one, scores), one, results.size()));
    }
    const Tensor y = results.size() == 1 ? results[0] : concat(results, -1);
    g_.output("y", y);
    const Tensor loss = (y * g_.input("weight", dtype_, y.shape())).sum();
    std::vector<Tensor> wrt;
    for (const auto& [name, tensor] : inputs_) wrt.push_back(tensor);
    const std::vector<Tensor> gradients = grad(loss, wrt);
    std::size_t i = 0;
    for (const auto& [name, tensor] : inputs_) g_.output("grad." + name, gradients[i++]);
    return g_.finish();
  }

 private:
  Tensor weighted(const Tensor& s, const LaidOut& one, std::size_t part) {
    if (variant_.normalisation == Normalisation::after_the_product) return normalised_late(s, one);
    Tensor w = normalised(s, one.columns);
    if (variant_.extra == Extra::weights_returned) g_.output(fmt::format("weights{}", part), w);
    if (variant_.extra == Extra::dropout) w = dropout(w, g_.random_state(), 0.25);
    return one.apply(w.to(dtype_));
  }

  Tensor normalised(const Tensor& s, int columns) const {
    switch (variant_.normalisation) {
      case Normalisation::softmax: return s.softmax(columns);
      case Normalisation::softmax_written_out: {
        const Tensor p = exp(s - s.max(columns, true));
        return p / p.sum(columns, true);
      }
      case Normalisation::without_max: return exp(s) / exp(s).sum(columns, true);
      case Normalisation::by_reciprocal: {
        const Tensor p = exp(s - s.max(columns, true).detach());
        return p * reciprocal(p.sum(columns, true));
      }
      case Normalisation::exp_of_log_softmax: return exp(s.log_softmax(columns));
      case Normalisation::by_logsumexp: return exp(s - s.logsumexp(columns, true));
      case Normalisation::after_the_product: break;
    }
    return s;
  }

  /// The weights are divided by their sum after the matmul with the values.
  Tensor normalised_late(const Tensor& s, const LaidOut& one) const {
    const Tensor p = exp(s - s.max(one.columns, true).detach());
    return one.apply(p.to(dtype_)) / p.sum(one.columns, true).to(dtype_);
  }

  const PatternVariant& variant_;
  DType dtype_;
  Sizes sizes_;
  Graph g_;
  std::map<std::string, Tensor, std::less<>> inputs_, masks_;
};

}  // namespace

std::string PatternVariant::name() const {
  return fmt::format("layout {} scale {} mask {} normalisation {} extra {} types {} depth {}",
                     static_cast<int>(layout), static_cast<int>(scale), static_cast<int>(mask),
                     static_cast<int>(normalisation), static_cast<int>(extra), static_cast<int>(types), depth);
}

std::vector<PatternVariant> variants() {
  std::vector<PatternVariant> found;
  std::set<PatternVariant> known;
  const auto add = [&](const PatternVariant& s) {
    if (possible(s) && known.insert(s).second) found.push_back(s);
  };
  for (int i = 0; i < layouts; ++i) add({.layout = static_cast<Layout>(i)});
  for (int i = 0; i < scales; ++i) add({.scale = static_cast<Scale>(i)});
  for (int i = 0; i < masks; ++i) add({.mask = static_cast<Mask>(i)});
  for (int i = 0; i < normalisations; ++i) add({.normalisation = static_cast<Normalisation>(i)});
  for (int i = 0; i < extras; ++i) add({.extra = static_cast<Extra>(i)});
  for (int i = 0; i < type_kinds; ++i) add({.mask = Mask::causal_fill, .types = static_cast<Types>(i)});
  for (int i = 0; i < layouts; ++i)
    for (const Mask mask : {Mask::causal_where, Mask::both_fill, Mask::alibi, Mask::bias_shared})
      add({.layout = static_cast<Layout>(i), .mask = mask});
  for (int i = 0; i < layouts; ++i)
    for (const Extra extra : {Extra::dropout, Extra::cross, Extra::weights_returned})
      add({.layout = static_cast<Layout>(i), .extra = extra});
  for (int i = 0; i < layouts; ++i) add({.layout = static_cast<Layout>(i), .scale = Scale::by_parameter});
  for (const Layout layout : {Layout::batched, Layout::batched_viewed})
    for (int i = 0; i < masks; ++i) add({.layout = layout, .mask = static_cast<Mask>(i)});
  std::mt19937 random(7);
  const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  while (found.size() < 360)
    add({.layout = static_cast<Layout>(pick(layouts)),
         .scale = static_cast<Scale>(pick(scales)),
         .mask = static_cast<Mask>(pick(masks)),
         .normalisation = static_cast<Normalisation>(pick(normalisations)),
         .extra = static_cast<Extra>(pick(extras)),
         .types = pick(4) ? Types::f32 : static_cast<Types>(pick(type_kinds))});
  return found;
}

ir::Graph build(const PatternVariant& variant, std::optional<DType> dtype) {
  return Builder(variant, dtype.value_or(dtype_of(variant.types))).run();
}

}  // namespace lathe::test
