#include <cmath>
#include <limits>

#include "frontend/ops/ops.h"
#include "tests/attention/variants/variant.h"

namespace lathe::test {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

class Masks {
 public:
  Masks(const PatternVariant& variant, const Sizes& sizes, Graph& g, const MakeInput& input, const LaidOut& laid_out,
        const Tensor& scores)
      : variant_(variant), z_(sizes), g_(g), input_(input), position_(laid_out.position), s_(scores) {}

  Tensor run() const {
    switch (variant_.mask) {
      case Mask::none: return s_;
      case Mask::causal_fill: return s_.masked_fill(position_(~causal()), -1e9);
      case Mask::causal_fill_inf: return s_.masked_fill(position_(~causal()), minus_infinity);
      case Mask::causal_where: return where(position_(causal()), s_, -1e9);
      case Mask::causal_where_swapped: return where(position_(~causal()), minus_infinity, s_);
      case Mask::causal_add: return s_ + position_((~causal()).to(s_.dtype()) * -30000.0);
      case Mask::causal_add_inf: return position_(log(causal().to(s_.dtype()))) + s_;
      case Mask::causal_tril: return s_.masked_fill(position_(tril(ones()) == 0), -1e9);
      case Mask::causal_triu_add: return s_ + position_(triu(g_.full({1, 1, z_.S, z_.T}, -30000, s_.dtype()), 1));
      case Mask::causal_iota: return where(position_(rows() >= columns()), s_, minus_infinity);
      case Mask::causal_literal: return s_ + position_(literal());
      default: return others();
    }
  }

 private:
  Tensor others() const {
    switch (variant_.mask) {
      case Mask::padding_bool: return s_.masked_fill(position_(~padding(boolean)), -1e9);
      case Mask::padding_i64: return s_.masked_fill(position_(padding(i64)) == 0, -1e9);
      case Mask::padding_f32: return s_ + (1.0 - position_(padding(s_.dtype()))) * -10000.0;
      case Mask::padding_rows:
        return s_.masked_fill(position_(padding(boolean) & input_("row_mask", boolean, {z_.N, 1, z_.S, 1})), -1e9);
      case Mask::both_fill:
        return s_.masked_fill(position_(~causal()), -1e9).masked_fill(position_(~padding(boolean)), -1e9);
      case Mask::both_and: return where(position_(causal() & padding(boolean)), s_, -1e9);
      case Mask::both_add:
        return s_ + position_((~causal()).to(s_.dtype()) * -30000.0) +
               position_((padding(i64) == 0).to(s_.dtype()) * -30000.0);
      case Mask::window: return where(position_(causal() & (rows() - columns() < g_.constant(3, i64))), s_, -1e9);
      case Mask::alibi: return s_ + position_(alibi());
      case Mask::soft_cap: return tanh(s_ / 5.0) * 5.0;
      case Mask::soft_cap_causal: return (tanh(s_ / 5.0) * 5.0).masked_fill(position_(~causal()), minus_infinity);
      case Mask::bias: return s_ + position_(floats("bias", {z_.N, z_.h, z_.S, z_.T}));
      case Mask::bias_shared: return s_ + position_(floats("bias", {1, z_.h, z_.S, z_.T}));
      case Mask::bias_then_mask:
        return (s_ + position_(floats("bias", {1, 1, z_.S, z_.T}))).masked_fill(position_(~causal()), minus_infinity);
      case Mask::gate: return s_ * position_(floats("gate", {z_.N, z_.h, z_.S, 1}));
      case Mask::tiny_fill: return s_.masked_fill(position_(~causal()), -1e-20);
      default: return s_;
    }
  }

  /// bool [1, 1, S, T]
  Tensor causal() const { return g_.causal_mask(z_.S, z_.T).unsqueeze(0).unsqueeze(0); }
  Tensor ones() const { return g_.full({1, 1, z_.S, z_.T}, 1, s_.dtype()); }
  Tensor rows() const { return g_.arange(z_.S, i64).view({1, 1, z_.S, 1}); }
  Tensor columns() const { return g_.arange(z_.T, i64).view({1, 1, 1, z_.T}); }
  Tensor padding(DType dtype) const { return input_("mask", dtype, {z_.N, 1, 1, z_.T}); }

  Tensor floats(std::string_view name, const Shape& shape) const { return input_(name, {}, shape).to(s_.dtype()); }

  Tensor literal() const {
    std::vector<double> values;
    for (int row = 0; row < literal_size; ++row)
      for (int column = 0; column < literal_size; ++column) values.push_back(column <= row ? 0 : -30000);
    return g_.literal({1, 1, z_.S, z_.T}, values, s_.dtype());
  }

  Tensor alibi() const {
    std::vector<double> slopes;
    for (std::int64_t head = 0; head < *z_.h.value(); ++head)
      slopes.push_back(std::pow(2.0, -static_cast<double>(head + 1)));
    return g_.literal({1, z_.h, 1, 1}, slopes, s_.dtype()) * (columns() - rows()).to(s_.dtype());
  }

  const PatternVariant& variant_;
  const Sizes& z_;
  Graph& g_;
  const MakeInput& input_;
  const std::function<Tensor(const Tensor&)>& position_;
  Tensor s_;
};

}  // namespace

Tensor mask_scores(const PatternVariant& variant, const Sizes& sizes, Graph& g, const MakeInput& input,
                   const LaidOut& laid_out, Tensor scores) {
  return Masks(variant, sizes, g, input, laid_out, scores).run();
}

bool has_literal(const PatternVariant& variant) { return variant.mask == Mask::causal_literal; }

}  // namespace lathe::test
