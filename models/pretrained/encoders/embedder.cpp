#include "models/pretrained/encoders/embedder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ir/support/error.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/text/template/values/code_points.h"

namespace lathe::pretrained {

namespace {

Executable compiled(const PretrainedSentenceEncoder& model, const EmbedderOptions& options) {
  if (options.batch < 1)
    throw UserError(fmt::format("batches of {} texts", options.batch), "embed_batch", "give 1 or more");
  Graph g{"embed"};
  const Shape shape{Dim("B"), Dim("T")};
  const EncoderInputs inputs{
      .ids = g.input("input_ids", i64, shape), .mask = g.input("attention_mask", i64, shape), .dtype = options.dtype};
  g.output("vectors", model.model->embed(inputs).to(at_least_f32(options.dtype)));  // [B, width]
  return compile(g.finish(), {.target = options.target,
                              .mode = Mode::evaluation,
                              .parameters = model.weights,
                              .threads = options.threads,
                              .cache = options.cache});
}

/// Tokens of several texts, padded to rows of equal length, and their mask.
struct Rows {
  HostTensor ids, mask;

  Rows(std::span<const std::vector<TokenId>* const> texts, std::int64_t padding) {
    // A text may have no tokens, but a row has at least one.
    std::int64_t T = 1, row = 0;
    for (const auto* text : texts) T = std::max(T, std::ssize(*text));
    ids = HostTensor(i64, {std::ssize(texts), T});
    mask = HostTensor(i64, {std::ssize(texts), T});
    for (const auto* text : texts) {
      for (std::int64_t t = 0; t < T; ++t) {
        const bool is_token = t < std::ssize(*text);
        ids.set_int(row * T + t, is_token ? (*text)[t] : padding);
        mask.set_int(row * T + t, is_token ? 1 : 0);
      }
      ++row;
    }
  }
};

}  // namespace

Embedder Embedder::load(const std::filesystem::path& folder, const EmbedderOptions& options,
                        const std::filesystem::path& adapter) {
  auto loaded = load_adapted<SentenceEncoder>(find_adapted(folder, adapter));
  return {std::move(loaded.model), Tokenizer::load(loaded.text_folder), options};
}

Embedder::Embedder(PretrainedSentenceEncoder model, Tokenizer tokenizer, const EmbedderOptions& options)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      options_(options),
      embed_(compiled(model_, options)) {}

std::vector<TokenId> Embedder::tokens_of(const std::string& text) const {
  const TextOptions& how = model().texts();
  const std::string_view stripped = jinja::strip_start(jinja::strip_end(text));
  const Truncation truncation{.max_length = static_cast<std::size_t>(how.longest),
                              .side = tokenizer_.truncation_side()};
  return tokenizer_
      .encode(how.lower_case ? jinja::to_lower(stripped) : std::string(stripped),
              {.offsets = false, .truncation = truncation})
      .ids;
}

HostTensor Embedder::embed(std::span<const std::string> texts, const std::optional<std::string>& prompt) {
  const std::string before = prompt ? *prompt : model().texts().default_prompt_text();
  std::vector<std::vector<TokenId>> tokens;
  for (const std::string& text : texts) tokens.push_back(tokens_of(before + text));
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tokens[a].size() < tokens[b].size(); });
  HostTensor vectors(at_least_f32(options_.dtype), {std::ssize(texts), model().width()});
  const std::size_t bytes = texts.empty() ? 0 : vectors.bytes() / texts.size(),
                    batch = static_cast<std::size_t>(options_.batch);
  for (std::size_t first = 0; first < order.size(); first += batch) {
    const std::span members = std::span(order).subspan(first, std::min(batch, order.size() - first));
    std::vector<const std::vector<TokenId>*> rows;
    for (const std::size_t i : members) rows.push_back(&tokens[i]);
    const Rows inputs(rows, model().encoder().padding());
    const HostTensor made = embed_.run({{"input_ids", inputs.ids}, {"attention_mask", inputs.mask}}).at("vectors");
    for (std::size_t row = 0; row < members.size(); ++row)
      std::memcpy(vectors.data() + members[row] * bytes, made.data() + row * bytes, bytes);
  }
  return vectors;
}

HostTensor similarities(const HostTensor& vectors, Similarity how) {
  const std::int64_t n = vectors.shape()[0], d = vectors.shape()[1];
  const auto sum = [&](std::int64_t i, std::int64_t j, const auto& term) {
    double total = 0;
    for (std::int64_t k = 0; k < d; ++k) total += term(vectors.get(i * d + k), vectors.get(j * d + k));
    return total;
  };
  const auto dot = [&](std::int64_t i, std::int64_t j) {
    return sum(i, j, [](double x, double y) { return x * y; });
  };
  std::vector<double> squares;  // squared lengths of the vectors
  for (std::int64_t i = 0; i < n; ++i) squares.push_back(dot(i, i));
  const auto cosine = [&](std::int64_t i, std::int64_t j) {
    const double lengths = std::sqrt(squares[i] * squares[j]);
    return lengths == 0 ? 0 : dot(i, j) / lengths;
  };
  const auto similarity = [&](std::int64_t i, std::int64_t j) {
    switch (how) {
      case Similarity::cosine: return cosine(i, j);
      case Similarity::dot: return dot(i, j);
      case Similarity::euclidean: return -std::sqrt(sum(i, j, [](double x, double y) { return (x - y) * (x - y); }));
      case Similarity::manhattan: return -sum(i, j, [](double x, double y) { return std::abs(x - y); });
    }
    throw InternalError("a similarity out of range");
  };
  HostTensor all(f64, {n, n});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      const double value = similarity(i, j);
      all.set(i * n + j, value);
      all.set(j * n + i, value);
    }
  return all;
}

HostTensor cosine_similarities(const HostTensor& vectors) { return similarities(vectors, Similarity::cosine); }

}  // namespace lathe::pretrained
