#include "tests/fuzz/texts/text_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tests/fuzz/texts/text_oracle.h"

namespace lathe::fuzz {

TextGraph::TextGraph(const ir::Graph& graph, const Parameters& weights, bool is_compiled)
    : graph_(graph), weights_(weights.borrowed()) {
  if (is_compiled)
    executable_.emplace(compile(
        graph, {.mode = Mode::evaluation, .parameters = weights_, .threads = 1, .cache = &compiled_kernels()}));
}

Tensors TextGraph::run(const Tensors& inputs) {
  if (executable_) return executable_->run(inputs);
  Tensors arguments = inputs;
  for (const ir::ValueId id : graph_.arguments())
    if (const std::string& name = graph_[id].name; weights_.contains(name))
      arguments.emplace(name, weights_.get(name));
  return ir::interpret(graph_, arguments);
}

PaddedTexts padded_texts(const std::vector<Ids>& texts, bool is_left, std::optional<std::int64_t> padding,
                         std::int64_t vocab, std::mt19937& random) {
  const std::int64_t B = std::ssize(texts);
  std::int64_t T = 0;
  for (const Ids& text : texts) T = std::max(T, std::ssize(text));
  T += random() % 3;
  PaddedTexts made{.ids = HostTensor(i64, {B, T}),
                   .mask = HostTensor(i64, {B, T}),
                   .positions = HostTensor(i64, {B, T}),
                   .lengths = HostTensor(i64, {B}),
                   .starts = {}};
  for (std::int64_t i = 0; i < made.ids.numel(); ++i)
    made.ids.set_int(i, padding ? *padding : static_cast<std::int64_t>(random() % static_cast<unsigned>(vocab)));
  for (std::int64_t b = 0; b < B; ++b) {
    const Ids& text = texts[static_cast<std::size_t>(b)];
    made.starts.push_back(is_left ? T - std::ssize(text) : 0);
    made.lengths.set_int(b, std::ssize(text));
    for (std::int64_t t = 0; t < std::ssize(text); ++t) {
      const std::int64_t at = b * T + made.starts.back() + t;
      made.ids.set_int(at, text[static_cast<std::size_t>(t)]);
      made.mask.set_int(at, 1);
      made.positions.set_int(at, t);
    }
  }
  return made;
}

HostTensor ids_tensor(const Ids& ids) { return HostTensor::from_ints({1, std::ssize(ids)}, ids); }

Complaint differing_row(const HostTensor& got, std::int64_t a, const HostTensor& want, std::int64_t b) {
  constexpr double tolerance = 1e-10;
  const std::int64_t n = want.shape().back();
  if (got.shape().back() != n) return fmt::format("rows of {} and {} numbers", got.shape().back(), n);
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double wanted = want.get(b * n + i), d = std::abs(got.get(a * n + i) - wanted);
    largest = std::max(largest, std::abs(wanted));
    if (!(d <= difference)) difference = d;  // NaN too
  }
  if (difference <= tolerance * largest) return std::nullopt;
  return fmt::format("differs by {:.3g} of {:.3g}", difference, largest);
}

Complaint differing_rows(const HostTensor& got, std::int64_t first, const HostTensor& want, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (const Complaint wrong = differing_row(got, first + i, want, i)) return fmt::format("token {} {}", i, *wrong);
  return std::nullopt;
}

std::string sizes_text(const std::vector<Ids>& texts) {
  std::string text;
  for (const Ids& each : texts) text += fmt::format("{}{}", text.empty() ? "" : ", ", each.size());
  return text;
}

std::string text_case(unsigned seed) {
  std::mt19937 random(seed);
  return random_model(seed, random).config;
}

Complaint text_alone(unsigned seed) {
  std::mt19937 random(seed);
  const RandomModel made = random_model(seed, random);
  switch (made.kind) {
    case ModelKind::decoder: return check_decoder(made, random);
    case ModelKind::encoder: return check_encoder(made, random);
    case ModelKind::encoder_decoder: return check_encoder_decoder(made, random);
  }
  return "a kind out of range";
}

}  // namespace lathe::fuzz
