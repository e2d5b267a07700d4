#include "models/generation/cached_lm.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "models/generation/cache_states.h"
#include "models/pretrained/causal_lm.h"
#include "runtime/backend/backend.h"

namespace lathe {

namespace {

struct BuiltGraph {
  ir::Graph graph;
  std::int64_t widest_window = 0;
};

/// Returns the states of hidden [B, T, d] at position `last` i64 [B] of each sequence: [B, d].
Tensor rows_at(const Tensor& hidden, const Tensor& last) {
  const Graph g = hidden.graph();
  const Dim B = hidden.size(0), T = hidden.size(1), d = hidden.size(2);
  const Tensor positions = g.arange(B, i64) * g.dim_value(T) + last;  // [B]
  return gather(hidden.reshape({B.unnamed() * T.unnamed(), d}), positions, 0);
}

BuiltGraph build(const pretrained::CausalLm& model, CachedLm::Kind kind, DType dtype, const Dim& B,
                 std::optional<DType> cache_dtype) {
  using Kind = CachedLm::Kind;
  const bool step = kind == Kind::step || kind == Kind::beams;
  Graph g(kind == Kind::beams ? "beams" : step ? "step" : kind == Kind::ragged ? "ragged_prompt" : "prompt");
  const Dim T = step ? Dim(1) : Dim("T");
  const Tensor ids = g.input("input_ids", i64, {B, T});
  nn::KeyValueCache cache{.dtype = cache_dtype.value_or(default_cache_dtype(model, dtype))};
  if (kind != Kind::prompt) cache.positions = g.input("positions", i64, {B, T});
  if (kind == Kind::beams) cache.parents = g.input("parents", i64, {B});
  pretrained::TokenInputs inputs{.ids = ids, .dtype = dtype, .cache = cache};
  if (model.depends_on_length()) inputs.lengths = g.input("lengths", i64, {B});
  const Tensor hidden = model.hidden_states(inputs).back();                                  // [B, T, d]
  const Tensor row = step ? hidden.squeeze(1) : rows_at(hidden, g.input("last", i64, {B}));  // [B, d]
  g.output("logits", model.head(row).to(at_least_f32(dtype)));                               // [B, vocab]
  return {g.finish(), *cache.widest_window};
}

CachedLm::Kind kind_of(std::span<const std::vector<CachedLm::TokenId>> prompts) {
  const auto differs = [&](const auto& p) { return p.size() != prompts[0].size(); };
  return std::any_of(prompts.begin(), prompts.end(), differs) ? CachedLm::Kind::ragged : CachedLm::Kind::prompt;
}

std::int64_t size_of(const std::vector<CachedLm::TokenId>& prompt) {
  return static_cast<std::int64_t>(prompt.size());
}

std::vector<std::vector<CachedLm::TokenId>> chosen(const std::vector<std::vector<CachedLm::TokenId>>& texts,
                                                   std::span<const std::int64_t> which) {
  std::vector<std::vector<CachedLm::TokenId>> taken;
  for (const std::int64_t index : which) taken.push_back(texts[index]);
  return taken;
}

}  // namespace

ir::Graph CachedLm::graph(const pretrained::CausalLm& model, Kind kind, DType dtype, const Dim& batch,
                          std::optional<DType> cache_dtype) {
  return build(model, kind, dtype, batch, cache_dtype).graph;
}

struct CachedLm::Compiled {
  Executable executable;
  bool takes_length;  ///< false if every attention has a window
};

/// The weights with a cache, and code for them. A side is for one small batch size, so that matmuls read the
/// weights in one stream, or for batches of any size.
struct CachedLm::Side {
  Dim batch;
  Parameters store;
  CacheStates states = {};       ///< valid after the first compilation, like window_rows
  std::int64_t window_rows = 0;  ///< most rows that a windowed attention needs; 0: there are no windows
  std::map<Kind, Compiled> compiled = {};
};

/// Texts to read into the cache of a side, and the length that sets the rotary angles of each.
struct CachedLm::Reading {
  Side& side;
  std::span<const std::vector<TokenId>> texts;
  std::span<const std::int64_t> lengths;
  Kind kind;
};

CachedLm::CachedLm(const pretrained::CausalLm& model, const Parameters& weights, const Options& options)
    : model_(model),
      weights_(weights.borrowed()),
      options_(options),
      streamed_rows_(machine_of(options.target).streamed_rows),
      sides_(std::make_unique<std::map<std::int64_t, Side>>()),
      most_positions_(model.most_positions().value_or(std::numeric_limits<std::int64_t>::max())) {
  if (options.chunk < 1)
    throw UserError(fmt::format("chunks of {} tokens", options.chunk), "generation_chunk", "give 1 or more");
}

CachedLm::~CachedLm() = default;
CachedLm::CachedLm(CachedLm&&) noexcept = default;

std::int64_t CachedLm::vocabulary_size() const { return model_.vocabulary_size(); }

std::int64_t CachedLm::length() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

std::int64_t CachedLm::cache_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [size, side] : *sides_) bytes += side.states.bytes(side.store);
  return bytes;
}

CachedLm::Side& CachedLm::side(std::int64_t sequences) {
  const std::int64_t known = sequences <= streamed_rows_ ? sequences : 0;
  const auto found = sides_->find(known);
  if (found != sides_->end()) return found->second;
  const Dim size = known > 0 ? Dim("B", known) : Dim("B");
  return sides_->emplace(known, Side{.batch = size, .store = weights_.borrowed()}).first->second;
}

CachedLm::Compiled& CachedLm::compiled(Side& of, Kind kind) {
  const auto found = of.compiled.find(kind);
  if (found != of.compiled.end()) return found->second;
  const auto [graph, widest_window] = build(model_, kind, options_.dtype, of.batch, options_.cache_dtype);
  of.states.learn(graph);
  if (widest_window > 0) of.window_rows = widest_window + options_.chunk - 1;
  const bool takes_length = !ir::dims_without_argument(graph).empty();
  return of.compiled.emplace(kind, Compiled{compile_over(of.store, graph, options_), takes_length}).first->second;
}

void CachedLm::run(const Reading& how, InputRefs inputs, HostTensor& logits, std::int64_t length) {
  auto& [executable, takes_length] = compiled(how.side, how.kind);
  HostTensor lengths;
  if (model_.depends_on_length()) {
    lengths = HostTensor::from_ints({std::ssize(how.lengths)}, {how.lengths.begin(), how.lengths.end()});
    inputs.emplace("lengths", lengths);
  }
  executable.run(inputs, {{"logits", logits}}, takes_length ? DimBindings{{"length", length}} : DimBindings{});
}

/// Grows the caches to `length` positions for all sequences; copies the old rows if `keep`.
void CachedLm::make_room(Side& of, std::int64_t sequences, std::int64_t length, bool keep) {
  capacity_ = CacheStates::capacity(capacity_, length, most_positions_);
  of.states.fit(of.store,
                {{"B", sequences}, {"capacity", capacity_}, {"window_rows", std::min(capacity_, of.window_rows)}},
                keep);
}

const HostTensor& CachedLm::start(std::span<const std::vector<CachedLm::TokenId>> prompts) {
  check_prompts(prompts);
  lengths_.clear();
  last_.clear();
  for (const auto& prompt : prompts) {
    check_positions(size_of(prompt), most_positions_);
    lengths_.push_back(size_of(prompt));
    last_.push_back(prompt.back());
  }
  texts_.clear();
  if (model_.depends_on_length()) texts_.assign(prompts.begin(), prompts.end());
  // Caches for other batch sizes are freed.
  Side& own = side(batch());
  for (auto& [size, other] : *sides_)
    if (&other != &own) other.states.erase(other.store);
  read(own, prompts, lengths_, logits_);
  return logits_;
}

/// Computes the logits [B, vocab] of the token after each text.
void CachedLm::read(Side& of, std::span<const std::vector<CachedLm::TokenId>> texts,
                    std::span<const std::int64_t> lengths, HostTensor& logits) {
  const Reading how{of, texts, lengths, kind_of(texts)};
  compiled(of, how.kind);
  std::int64_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, size_of(text));
  make_room(of, std::ssize(texts), longest, false);
  const std::vector<std::int64_t> shape{std::ssize(texts), model_.vocabulary_size()};
  for (HostTensor* each : {&logits, &chunk_logits_})
    if (each->shape() != shape) *each = HostTensor(at_least_f32(options_.dtype), shape);
  for (std::int64_t first = 0; first < longest; first += options_.chunk)
    read_chunk(how, first, std::min(options_.chunk, longest - first), logits);
}

/// Reads tokens first .. first + count - 1 of each text. A text that has already ended repeats its last token at its
/// own position, which rewrites the same values.
void CachedLm::read_chunk(const Reading& how, std::int64_t first, std::int64_t count, HostTensor& logits) {
  const std::int64_t B = std::ssize(how.texts);
  HostTensor ids(i64, {B, count}), positions(i64, {B, count}), last(i64, {B});
  std::int64_t seen = 0;
  for (std::int64_t b = 0; b < B; ++b) {
    const std::vector<CachedLm::TokenId>& text = how.texts[b];
    const std::int64_t end = size_of(text) - 1;
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t at = std::min(first + t, end);
      ids.set_int(b * count + t, text[at]);
      positions.set_int(b * count + t, at);
    }
    last.set_int(b, std::clamp<std::int64_t>(end - first, 0, count - 1));
    seen = std::max(seen, std::min(first + count, end + 1));
  }
  InputRefs inputs{{"input_ids", ids}, {"last", last}};
  if (how.kind == Kind::ragged) inputs.emplace("positions", positions);
  run(how, std::move(inputs), chunk_logits_, seen);
  LATHE_ASSERT(B > 0);  // check_prompts()
  const std::size_t row = chunk_logits_.bytes() / static_cast<std::size_t>(B);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t end = size_of(how.texts[b]) - 1;
    if (first <= end && end < first + count)
      std::memcpy(logits.data() + static_cast<std::size_t>(b) * row,
                  chunk_logits_.data() + static_cast<std::size_t>(b) * row, row);
  }
}

/// Recomputes the keys and values of one row for its new length. The row is read on its own, so the cost is that of
/// this text only.
void CachedLm::read_again(std::size_t row) {
  Side &all = side(batch()), &alone = side(1);
  HostTensor logits;
  read(alone, {&texts_[row], 1}, {&lengths_[row], 1}, logits);
  if (&alone != &all) all.states.copy_sequence(alone.store, all.store, static_cast<std::int64_t>(row));
}

const HostTensor& CachedLm::step(std::span<const CachedLm::TokenId> tokens, const std::vector<bool>& done) {
  check_step(tokens, done, batch());
  return advance(tokens, done, {});
}

/// Adds a token to each sequence. With `parents`, each sequence extends sequence `parents[i]` of the previous step;
/// all of them have the same length.
const HostTensor& CachedLm::advance(std::span<const CachedLm::TokenId> tokens, const std::vector<bool>& done,
                                    std::span<const std::int64_t> parents) {
  Side& own = side(batch());
  if (!texts_.empty() && !parents.empty()) texts_ = chosen(texts_, parents);
  const auto is_done = [&](std::size_t b) { return !done.empty() && done[b]; };
  std::vector<std::size_t> changed;  // rows whose cached keys are for a shorter length
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    if (is_done(b)) continue;
    check_positions(lengths_[b] + 1, most_positions_);
    if (!model_.has_same_rotation(lengths_[b], lengths_[b] + 1)) changed.push_back(b);
    ++lengths_[b];
    last_[b] = tokens[b];
  }
  make_room(own, batch(), length(), true);
  for (const std::size_t b : changed) read_again(b);
  // Beams have the same length, so all of them were recomputed, each into its own row.
  if (!changed.empty()) parents = {};
  const std::int64_t B = batch();
  HostTensor ids(i64, {B, 1}), positions(i64, {B, 1}), from(i64, {B});
  for (std::int64_t b = 0; b < B; ++b) {
    ids.set_int(b, last_[b]);
    positions.set_int(b, lengths_[b] - 1);
    if (!parents.empty()) from.set_int(b, parents[b]);
  }
  InputRefs inputs{{"input_ids", ids}, {"positions", positions}};
  if (!parents.empty()) inputs.emplace("parents", from);
  run({own, {}, lengths_, parents.empty() ? Kind::step : Kind::beams}, std::move(inputs), logits_, length());
  for (std::size_t b = 0; b < texts_.size(); ++b)
    if (!is_done(b)) texts_[b].push_back(tokens[b]);
  return logits_;
}

/// Turns the single started sequence into `count` copies.
void CachedLm::repeat_sequence(std::int64_t count) {
  Side &one = side(1), &several = side(count);
  const auto rows = static_cast<std::size_t>(count);
  lengths_.assign(rows, lengths_.front());
  last_.assign(rows, last_.front());
  if (!texts_.empty()) texts_.assign(rows, std::vector<TokenId>(texts_.front()));
  compiled(several, Kind::beams);
  one.states.repeat(one.store, several.store, count);
  one.states.erase(one.store);
  logits_ = HostTensor(logits_.dtype(), {count, vocabulary_size()});
}

std::vector<Beam> CachedLm::beams(const std::vector<TokenId>& prompt, const BeamOptions& options) {
  check(options);
  return search_beams(prompt, &start({&prompt, 1}), options, [&](auto tokens, auto parents) -> const HostTensor& {
    if (batch() != options.width) repeat_sequence(options.width);
    return advance(tokens, {}, parents);
  });
}

}  // namespace lathe
