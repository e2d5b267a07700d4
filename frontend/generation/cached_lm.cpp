#include "frontend/generation/cached_lm.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "frontend/decode/decoding.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "ir/tensor/binding.h"

namespace lathe {

namespace {

struct BuiltGraph {
  ir::Graph graph;
  std::int64_t widest_window = 0;
};

/// hidden [B, T, d] at the position `last` i64 [B] of each sequence: [B, d].
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
  const Tensor hidden = model.hidden_states({.ids = ids, .dtype = dtype, .cache = cache}).back();  // [B, T, d]
  const Tensor row = step ? hidden.squeeze(1) : rows_at(hidden, g.input("last", i64, {B}));        // [B, d]
  g.output("logits", model.head(row).to(logits_type(dtype)));                                      // [B, vocab]
  return {g.finish(), *cache.widest_window};
}

bool is_ragged(std::span<const std::vector<CachedLm::TokenId>> prompts) {
  return std::any_of(prompts.begin(), prompts.end(), [&](const auto& p) { return p.size() != prompts[0].size(); });
}

std::int64_t size_of(const std::vector<CachedLm::TokenId>& prompt) {
  return static_cast<std::int64_t>(prompt.size());
}

}  // namespace

ir::Graph CachedLm::graph(const pretrained::CausalLm& model, Kind kind, DType dtype, const Dim& batch,
                          std::optional<DType> cache_dtype) {
  return build(model, kind, dtype, batch, cache_dtype).graph;
}

CachedLm::CachedLm(const pretrained::CausalLm& model, const Parameters& weights, const Options& options)
    : model_(model),
      weights_(weights.borrowed()),
      options_(options),
      most_positions_(model.most_positions().value_or(std::numeric_limits<std::int64_t>::max())) {
  if (options.chunk < 1)
    throw UserError(fmt::format("chunks of {} tokens", options.chunk), "generation_chunk", "give 1 or more");
}

std::int64_t CachedLm::length() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

std::int64_t CachedLm::cache_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [size, side] : sides_) bytes += side.states.bytes(side.store);
  return bytes;
}

CachedLm::Side& CachedLm::side() {
  // Products of at most so many rows stream their weights.
  constexpr std::int64_t few = 4;
  const std::int64_t known = batch() <= few ? batch() : 0;
  const auto found = sides_.find(known);
  if (found != sides_.end()) return found->second;
  const Dim size = known > 0 ? Dim("B", known) : Dim("B");
  return sides_.emplace(known, Side{.batch = size, .store = weights_.borrowed()}).first->second;
}

CachedLm::Compiled& CachedLm::compiled(Kind kind) {
  Side& of = side();
  const auto found = of.compiled.find(kind);
  if (found != of.compiled.end()) return found->second;
  const auto [graph, widest_window] = build(model_, kind, options_.dtype, of.batch, options_.cache_dtype);
  of.states.learn(graph);
  if (widest_window > 0) of.window_rows = widest_window + options_.chunk - 1;
  const bool takes_length = !ir::dims_without_argument(graph).empty();
  return of.compiled.emplace(kind, Compiled{compile_over(of.store, graph, options_), takes_length}).first->second;
}

void CachedLm::run(Kind kind, const InputRefs& inputs, HostTensor& logits, std::int64_t length) {
  auto& [executable, takes_length] = compiled(kind);
  executable.run(inputs, {{"logits", logits}}, takes_length ? DimBindings{{"length", length}} : DimBindings{});
}

void CachedLm::check_length(std::int64_t length) const {
  if (length > most_positions_)
    throw UserError(
        fmt::format("{} tokens are more than the {} positions that the model has", length, most_positions_),
        "generation_length", "give a shorter prompt, or ask for fewer tokens");
}

/// States for `length` positions of all sequences, the old rows kept where they are asked for.
void CachedLm::make_room(std::int64_t length, bool keep) {
  Side& of = side();
  capacity_ = CacheStates::capacity(capacity_, length, most_positions_);
  of.states.fit(of.store,
                {{"B", batch()}, {"capacity", capacity_}, {"window_rows", std::min(capacity_, of.window_rows)}},
                keep);
}

const HostTensor& CachedLm::start(std::span<const std::vector<CachedLm::TokenId>> prompts) {
  check_prompts(prompts);
  lengths_.clear();
  last_.clear();
  for (const auto& prompt : prompts) {
    check_length(size_of(prompt));
    lengths_.push_back(size_of(prompt));
    last_.push_back(prompt.back());
  }
  // A batch of another size lets the cache of the one before go.
  const Side& own = side();
  for (auto& [size, other] : sides_)
    if (&other != &own) other.states.erase(other.store);
  const Kind kind = is_ragged(prompts) ? Kind::ragged : Kind::prompt;
  compiled(kind);
  make_room(length(), false);
  const std::int64_t chunk = model_.depends_on_length() && side().window_rows == 0 ? length() : options_.chunk;
  for (std::int64_t first = 0; first < length(); first += chunk)
    read_chunk(prompts, first, std::min(chunk, length() - first), kind);
  return logits_;
}

/// Tokens first .. first + count - 1 of each prompt. One that has ended is given its last token again, at its own
/// place, which writes what is there.
void CachedLm::read_chunk(std::span<const std::vector<CachedLm::TokenId>> prompts, std::int64_t first,
                          std::int64_t count, Kind kind) {
  const std::int64_t B = batch();
  HostTensor ids(i64, {B, count}), positions(i64, {B, count}), last(i64, {B});
  for (std::int64_t b = 0; b < B; ++b) {
    const std::vector<CachedLm::TokenId>& prompt = prompts[static_cast<std::size_t>(b)];
    const std::int64_t end = size_of(prompt) - 1;
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t at = std::min(first + t, end);
      ids.set_int(b * count + t, prompt[static_cast<std::size_t>(at)]);
      positions.set_int(b * count + t, at);
    }
    last.set_int(b, std::clamp<std::int64_t>(end - first, 0, count - 1));
  }
  InputRefs inputs{{"input_ids", ids}, {"last", last}};
  if (kind == Kind::ragged) inputs.emplace("positions", positions);
  const std::int64_t vocab = model_.vocabulary_size();
  if (chunk_logits_.shape() != std::vector{B, vocab})
    chunk_logits_ = HostTensor(logits_type(options_.dtype), {B, vocab});
  if (logits_.shape() != chunk_logits_.shape()) logits_ = HostTensor(logits_type(options_.dtype), {B, vocab});
  run(kind, inputs, chunk_logits_, std::min(first + count, length()));
  const std::size_t row = chunk_logits_.bytes() / static_cast<std::size_t>(B);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t end = lengths_[static_cast<std::size_t>(b)] - 1;
    if (first <= end && end < first + count)
      std::memcpy(logits_.data() + static_cast<std::size_t>(b) * row,
                  chunk_logits_.data() + static_cast<std::size_t>(b) * row, row);
  }
}

const HostTensor& CachedLm::step(std::span<const CachedLm::TokenId> tokens, const std::vector<bool>& done) {
  if (tokens.size() != lengths_.size() || lengths_.empty() || (!done.empty() && done.size() != tokens.size()))
    throw UserError(
        fmt::format("{} tokens and {} marks for {} sequences", tokens.size(), done.size(), lengths_.size()),
        "generation_batch", "give one token for each sequence that was started");
  return advance(tokens, done, {});
}

/// A token more of each sequence. With `parents`, which are of one length, each extends one of the step before.
const HostTensor& CachedLm::advance(std::span<const CachedLm::TokenId> tokens, const std::vector<bool>& done,
                                    std::span<const std::int64_t> parents) {
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    if (!done.empty() && done[b]) continue;
    check_length(lengths_[b] + 1);
    ++lengths_[b];
    last_[b] = tokens[b];
  }
  make_room(length(), true);
  const std::int64_t B = batch();
  HostTensor ids(i64, {B, 1}), positions(i64, {B, 1}), from(i64, {B});
  for (std::int64_t b = 0; b < B; ++b) {
    ids.set_int(b, last_[static_cast<std::size_t>(b)]);
    positions.set_int(b, lengths_[static_cast<std::size_t>(b)] - 1);
    if (!parents.empty()) from.set_int(b, parents[static_cast<std::size_t>(b)]);
  }
  InputRefs inputs{{"input_ids", ids}, {"positions", positions}};
  if (!parents.empty()) inputs.emplace("parents", from);
  run(parents.empty() ? Kind::step : Kind::beams, inputs, logits_, length());
  return logits_;
}

/// The one sequence that was started becomes `count` equal ones.
void CachedLm::repeat_sequence(std::int64_t count) {
  Side& one = side();
  lengths_.assign(static_cast<std::size_t>(count), lengths_.front());
  last_.assign(static_cast<std::size_t>(count), last_.front());
  Side& several = side();
  compiled(Kind::beams);
  one.states.repeat(one.store, several.store, count);
  one.states.erase(one.store);
  logits_ = HostTensor(logits_.dtype(), {count, vocabulary_size()});
}

std::vector<Beam> CachedLm::beams(const std::vector<TokenId>& prompt, const BeamOptions& options) {
  check(options);
  const std::vector<double> first = logits_row(start({&prompt, 1}), 0);
  bool has_started = false;
  return beam_search(prompt, options, [&](auto sequences, auto parents) {
    // All beams begin with the prompt.
    if (!std::exchange(has_started, true)) return std::vector(sequences.size(), first);
    if (batch() != options.width) repeat_sequence(options.width);
    std::vector<TokenId> tokens;
    for (const std::vector<TokenId>& sequence : sequences) tokens.push_back(sequence.back());
    // A text is rotated by its length: it is read as a whole.
    const HostTensor& logits = model_.depends_on_length() ? start(sequences) : advance(tokens, {}, parents);
    std::vector<std::vector<double>> rows;
    for (std::int64_t i = 0; i < options.width; ++i) rows.push_back(logits_row(logits, i));
    return rows;
  });
}

}  // namespace lathe
