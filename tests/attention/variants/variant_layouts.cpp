#include <cmath>

#include "frontend/ops/ops.h"
#include "tests/attention/variants/variant.h"

namespace lathe::test {

namespace {

Tensor same(const Tensor& t) { return t; }

/// Queries, keys and values, as [N, h, S, d] unless noted.
struct Operands {
  Tensor q, k, v;
};

class Layouts {
 public:
  Layouts(const PatternVariant& variant, const Sizes& sizes, const MakeInput& input)
      : variant_(variant), z_(sizes), input_(input), scale_(1 / std::sqrt(static_cast<double>(*z_.d.value()))) {}

  std::vector<LaidOut> run() const {
    switch (variant_.layout) {
      case Layout::heads:
      case Layout::keys_transposed:
      case Layout::grouped_expand:
      case Layout::grouped_repeat:
      case Layout::one_key_head:
      case Layout::per_head: return {plain(operands(), same)};
      case Layout::split:
      case Layout::keys_permuted:
        return {plain(operands(), [z = z_](const Tensor& y) {
          return y.transpose(1, 2).contiguous().view({z.N, z.S, z.h * z.e});
        })};
      case Layout::split_reshape:
        return {plain(operands(),
                      [z = z_](const Tensor& y) { return y.transpose(1, 2).reshape({z.N, z.S, z.h * z.e}); })};
      case Layout::keys_first: return {keys_first()};
      case Layout::length_first: return {by_einsum("nqhd,nkhd->nhqk", "nhqk,nkhd->nqhd", -1, {0, 1, 2, 3})};
      case Layout::rows_outside: return {by_einsum("nqhd,nkhd->nqhk", "nqhk,nkhd->nqhd", -1, {0, 2, 1, 3})};
      case Layout::heads_last: return {by_einsum("nqhd,nkhd->qknh", "qknh,nkhd->nqhd", 1, {2, 3, 0, 1})};
      case Layout::batched:
      case Layout::batched_viewed: return {batched()};
      case Layout::batch_only: return {batch_only()};
      case Layout::flat: return {flat()};
      case Layout::head_by_head: return head_by_head();
      case Layout::grouped_broadcast:
      case Layout::grouped_einsum: return {grouped()};
    }
    return {};
  }

 private:
  Operands operands() const {
    switch (variant_.layout) {
      case Layout::split:
      case Layout::split_reshape: return {split("q", z_.S, z_.d), split("k", z_.T, z_.d), split("v", z_.T, z_.e)};
      case Layout::keys_permuted: return {split("q", z_.S, z_.d), split("k", z_.T, z_.d), split("v", z_.T, z_.e)};
      case Layout::keys_transposed:
        return {input_("q", {}, {z_.N, z_.h, z_.S, z_.d}), input_("k", {}, {z_.N, z_.h, z_.d, z_.T}).transpose(2, 3),
                input_("v", {}, {z_.N, z_.h, z_.T, z_.e})};
      case Layout::per_head:
        return {projected("q", z_.S, z_.d), projected("k", z_.T, z_.d), projected("v", z_.T, z_.e)};
      case Layout::grouped_expand:
      case Layout::grouped_repeat:
        return {input_("q", {}, {z_.N, z_.h, z_.S, z_.d}),
                grouped_heads(input_("k", {}, {z_.N, z_.groups, z_.T, z_.d})),
                grouped_heads(input_("v", {}, {z_.N, z_.groups, z_.T, z_.e}))};
      case Layout::one_key_head:
        return {input_("q", {}, {z_.N, z_.h, z_.S, z_.d}), input_("k", {}, {z_.N, 1, z_.T, z_.d}),
                input_("v", {}, {z_.N, 1, z_.T, z_.e})};
      default:
        return {input_("q", {}, {z_.N, z_.h, z_.S, z_.d}), input_("k", {}, {z_.N, z_.h, z_.T, z_.d}),
                input_("v", {}, {z_.N, z_.h, z_.T, z_.e})};
    }
  }

  Tensor split(std::string_view name, const Dim& length, const Dim& depth) const {
    return input_(name, {}, {z_.N, length, z_.h * depth}).view({z_.N, length, z_.h, depth}).transpose(1, 2);
  }

  Tensor projected(std::string_view name, const Dim& length, const Dim& depth) const {
    const Dim model{"m", 3};
    return einsum("nsm,hmd->nhsd", {input_(name, {}, {z_.N, length, model}),
                                    input_("W_" + std::string(name), {}, {z_.h, model, depth})});
  }

  /// [N, g, T, d] -> [N, h, T, d].
  Tensor grouped_heads(const Tensor& k) const {
    const std::int64_t times = *z_.h.value() / *z_.groups.value();
    if (variant_.layout == Layout::grouped_repeat) return k.repeat_interleave(times, 1);
    return k.unsqueeze(2)
        .expand({z_.N, z_.groups, Dim(times), k.size(2), k.size(3)})
        .reshape({z_.N, z_.h, k.size(2), k.size(3)});
  }

  /// Applies the scale before or after the matmul.
  Tensor scored(const Tensor& q, const Tensor& k, const std::function<Tensor(Tensor, Tensor)>& product) const {
    switch (variant_.scale) {
      case Scale::none:
      case Scale::on_values: return product(q, k);
      case Scale::times: return product(q, k) * scale_;
      case Scale::divided: return product(q, k) / (1 / scale_);
      case Scale::on_queries: return product(q * scale_, k);
      case Scale::on_keys: return product(q, k * scale_);
      case Scale::on_both: return product(q * std::sqrt(scale_), k * std::sqrt(scale_));
      case Scale::by_parameter: return product(q, k) * input_("scale", {}, {});
      case Scale::negated_twice: return -(product(-q, k) * scale_);
    }
    return product(q, k);
  }

  Tensor weighted(const Tensor& v) const { return variant_.scale == Scale::on_values ? v * 0.5 : v; }

  LaidOut plain(const Operands& o, const std::function<Tensor(const Tensor&)>& finish) const {
    const Tensor v = weighted(o.v);
    const auto product = [&](const Tensor& q, const Tensor& k) { return matmul(q, k.transpose(-2, -1)); };
    return {scored(o.q, o.k, product), -1, same, [v, finish](const Tensor& w) { return finish(matmul(w, v)); }};
  }

  LaidOut keys_first() const {
    const Operands o = operands();
    const Tensor v = weighted(o.v);
    const auto product = [&](const Tensor& q, const Tensor& k) { return matmul(k, q.transpose(-2, -1)); };
    return {scored(o.q, o.k, product), -2, [](const Tensor& m) { return m.transpose(-2, -1); },
            [v](const Tensor& w) { return matmul(w.transpose(-2, -1), v); }};
  }

  LaidOut by_einsum(std::string_view scores, std::string_view result, int columns,
                    const std::vector<std::int64_t>& order) const {
    const Tensor v = weighted(input_("v", {}, {z_.N, z_.T, z_.h, z_.e}));
    const auto product = [&](const Tensor& q, const Tensor& k) { return einsum(scores, {q, k}); };
    return {scored(input_("q", {}, {z_.N, z_.S, z_.h, z_.d}), input_("k", {}, {z_.N, z_.T, z_.h, z_.d}), product),
            columns, [order](const Tensor& m) { return m.permute(order); },
            [v, text = std::string(result)](const Tensor& w) { return einsum(text, {w, v}); }};
  }

  LaidOut batched() const {
    const auto merged = [&](std::string_view name, const Dim& length, const Dim& depth) {
      return split(name, length, depth).reshape({z_.N * z_.h, length, depth});
    };
    const Tensor v = weighted(merged("v", z_.T, z_.e));
    const auto product = [&](const Tensor& q, const Tensor& k) { return matmul(q, k.transpose(1, 2)); };
    const Tensor scores = scored(merged("q", z_.S, z_.d), merged("k", z_.T, z_.d), product);
    const auto finish = [z = z_, v](const Tensor& w) {
      return matmul(w, v).view({z.N, z.h, z.S, z.e}).transpose(1, 2).reshape({z.N, z.S, z.h * z.e});
    };
    if (variant_.layout == Layout::batched_viewed)
      return {scores.view({z_.N, z_.h, z_.S, z_.T}), -1, same,
              [z = z_, finish](const Tensor& w) { return finish(w.view({z.N * z.h, z.S, z.T})); }};
    return {scores, -1,
            [z = z_](const Tensor& m) { return m.expand({z.N, z.h, z.S, z.T}).reshape({z.N * z.h, z.S, z.T}); },
            finish};
  }

  LaidOut batch_only() const {
    const Operands o = {input_("q", {}, {z_.N, z_.S, z_.d}), input_("k", {}, {z_.N, z_.T, z_.d}),
                        input_("v", {}, {z_.N, z_.T, z_.e})};
    LaidOut made = plain(o, same);
    made.position = [](const Tensor& m) { return m.select(1, 0); };
    return made;
  }

  LaidOut flat() const {
    LaidOut made =
        plain({input_("q", {}, {z_.S, z_.d}), input_("k", {}, {z_.T, z_.d}), input_("v", {}, {z_.T, z_.e})}, same);
    made.position = [](const Tensor& m) { return m.select(0, 0).select(0, 0); };
    return made;
  }

  std::vector<LaidOut> head_by_head() const {
    const Operands all = operands();
    std::vector<LaidOut> made;
    for (std::int64_t head = 0; head < *z_.h.value(); ++head) {
      LaidOut one = plain({all.q.select(1, head), all.k.select(1, head), all.v.select(1, head)}, same);
      one.position = [head](const Tensor& m) { return m.select(1, m.size(1).is(1) ? 0 : head); };
      made.push_back(std::move(one));
    }
    return made;
  }

  LaidOut grouped() const {
    const Dim times(*z_.h.value() / *z_.groups.value());
    const Tensor q = input_("q", {}, {z_.N, z_.groups, times, z_.S, z_.d}),
                 k = input_("k", {}, {z_.N, z_.groups, z_.T, z_.d}),
                 v = weighted(input_("v", {}, {z_.N, z_.groups, z_.T, z_.e}));
    const auto position = [z = z_, times](const Tensor& m) {
      return m.size(1).is(1) ? m.unsqueeze(2) : m.view({m.size(0), z.groups, times, m.size(2), m.size(3)});
    };
    const bool named = variant_.layout == Layout::grouped_einsum;
    const auto product = [&](const Tensor& a, const Tensor& b) {
      return named ? einsum("ngrqd,ngkd->ngrqk", {a, b}) : matmul(a, b.unsqueeze(2).transpose(-2, -1));
    };
    return {scored(q, k, product), -1, position, [v, named, z = z_](const Tensor& w) {
              const Tensor y = named ? einsum("ngrqk,ngkd->ngrqd", {w, v}) : matmul(w, v.unsqueeze(2));
              return y.reshape({z.N, z.h, z.S, z.e});
            }};
  }

  const PatternVariant& variant_;
  const Sizes& z_;
  const MakeInput& input_;
  double scale_;
};

}  // namespace

std::vector<LaidOut> lay_out(const PatternVariant& variant, const Sizes& sizes, const MakeInput& input) {
  return Layouts(variant, sizes, input).run();
}

Sizes sizes_of(const PatternVariant& variant) {
  Sizes sizes;
  sizes.d = sizes.e = Dim{"d", variant.depth};
  if (variant.extra == Extra::cross) sizes.T = Dim{"T"};
  if (variant.extra == Extra::values_wider) sizes.e = Dim{"e", variant.depth + 2};
  switch (variant.layout) {
    case Layout::grouped_expand:
    case Layout::grouped_repeat:
    case Layout::grouped_broadcast:
    case Layout::grouped_einsum: sizes.h = Dim{"h", 4}; break;
    case Layout::batch_only: sizes.h = 1; break;
    case Layout::flat:
      sizes.h = 1;
      sizes.N = 1;
      break;
    default: break;
  }
  if (has_literal(variant)) sizes.S = sizes.T = literal_size;
  return sizes;
}

}  // namespace lathe::test
