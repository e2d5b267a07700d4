#include <fmt/core.h>

#include <algorithm>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

/// Ops on sequences of tokens.
namespace lathe::onnx {

namespace {

/// The n-grams of one length: their tokens, row-major, and the columns of the output that count them.
struct Grams {
  std::int64_t length = 0;
  std::int64_t first = 0;  ///< the number of the first one in the pool
  Ints tokens, columns;
};

/// Reads the n-grams of the lengths from min_gram_length to max_gram_length.
std::vector<Grams> grams_of(const OpCall& call) {
  const Ints starts = call.integers("ngram_counts"), columns = call.integers("ngram_indexes"),
             pool = call.integers("pool_int64s");
  const std::int64_t shortest = call.integer("min_gram_length"), longest = call.integer("max_gram_length");
  const auto end = static_cast<std::int64_t>(pool.size());
  std::vector<Grams> all;
  std::int64_t number = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const std::int64_t from = starts[i], to = i + 1 < starts.size() ? starts[i + 1] : end;
    if (from < 0 || to < from || to > end || (to - from) % length != 0)
      call.fail(
          fmt::format("the attribute ngram_counts gives {}-grams from {} to {} of {} tokens", length, from, to, end),
          "import_attribute");
    const std::int64_t count = (to - from) / length;
    if (number + count > static_cast<std::int64_t>(columns.size()))
      call.fail("the attribute ngram_indexes has fewer columns than there are n-grams", "import_attribute");
    if (length >= shortest && length <= longest && count > 0)
      all.push_back({length,
                     number,
                     {pool.begin() + from, pool.begin() + to},
                     {columns.begin() + number, columns.begin() + number + count}});
    number += count;
  }
  return all;
}

/// Returns how often each n-gram occurs in x [.., n] with `skips` tokens between its tokens: f32 [.., grams].
Tensor counts_of(const Tensor& x, const Grams& grams, std::int64_t skips) {
  const Graph graph = x.graph();
  const auto count = static_cast<std::int64_t>(grams.columns.size());
  const Tensor tokens =
      importing::literal(graph, vector_of(grams.tokens, i64)).reshape({count, grams.length}).to(x.dtype());
  const Dim windows = x.size(-1).unnamed() - Dim((grams.length - 1) * (skips + 1));
  Tensor is_found;
  for (std::int64_t i = 0; i < grams.length; ++i) {
    const Dim start(i * (skips + 1));
    const Tensor equal = x.slice(-1, start, start + windows).unsqueeze(-1) == tokens.select(1, i);
    is_found = is_found.is_empty() ? equal : is_found & equal;
  }
  return is_found.to(f32).sum(-2);
}

/// The value of an n-gram in the output: how often it occurs (TF), its weight if it occurs (IDF), or its weight for
/// each time that it occurs (TFIDF).
enum class Criterion : std::uint8_t { counts, occurs, weighted };

Criterion criterion_of(const OpCall& call) {
  const std::string mode = call.text("mode", "");
  if (mode == "TF") return Criterion::counts;
  if (mode == "IDF") return Criterion::occurs;
  if (mode == "TFIDF") return Criterion::weighted;
  call.fail(fmt::format("the attribute mode is '{}', not TF, IDF or TFIDF", mode), "import_attribute");
}

/// Returns the columns of n-grams in a tensor of tokens, weighted.
Results tfidf_vectorizer(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() != 1 && x.rank() != 2) call.fail("the tokens have neither 1 nor 2 dims", "import_operand");
  const std::int64_t most_skips = call.integer("max_skip_count");
  if (!x.size(-1).value()) call.fail("the number of tokens is unknown", "import_size");
  const Ints columns = call.integers("ngram_indexes");
  if (columns.empty() || std::ranges::min(columns) < 0)
    call.fail("the attribute ngram_indexes is empty or has negative columns", "import_attribute");
  const Criterion criterion = criterion_of(call);
  const auto* const given = call.find<std::vector<double>>("weights");
  const std::vector<double> weights = given ? *given : std::vector<double>(columns.size(), 1);
  if (weights.size() != columns.size())
    call.fail(fmt::format("the attribute weights has {} numbers for {} n-grams", weights.size(), columns.size()),
              "import_attribute");
  const std::int64_t size = std::ranges::max(columns) + 1;
  Shape shape = x.shape();
  shape.set(x.rank() - 1, size);
  Tensor y = call.graph().zeros(shape, f32);
  for (const Grams& grams : grams_of(call)) {
    Tensor counts;
    for (std::int64_t skips = 0; skips <= (grams.length == 1 ? 0 : most_skips); ++skips) {
      if (*x.size(-1).value() <= (grams.length - 1) * (skips + 1)) continue;
      const Tensor more = counts_of(x, grams, skips);
      counts = counts.is_empty() ? more : counts + more;
    }
    if (counts.is_empty()) continue;
    if (criterion == Criterion::occurs) counts = (counts > 0).to(f32);
    const auto first = weights.begin() + grams.first;
    const std::vector<double> own(first, first + static_cast<std::ptrdiff_t>(grams.columns.size()));
    if (criterion != Criterion::counts) counts = counts * importing::literal(call.graph(), vector_of(own, f32));
    const Tensor at = importing::literal(call.graph(), vector_of(grams.columns, i64));
    y = y + scatter_add(at, counts, size, x.rank() - 1);
  }
  return {y};
}

}  // namespace

std::span<const OpRecord> text_ops() {
  static constexpr OpRecord records[] = {
      {"TfIdfVectorizer", 9, latest,
       "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s weights",
       tfidf_vectorizer},
  };
  return records;
}

}  // namespace lathe::onnx
