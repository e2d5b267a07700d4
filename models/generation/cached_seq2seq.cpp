#include "models/generation/cached_seq2seq.h"

#include <algorithm>
#include <limits>

#include "frontend/decode/decoding.h"
#include "frontend/ops/ops.h"
#include "models/generation/cache_states.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"

namespace lathe {

namespace {

ir::Graph encode_graph(const pretrained::Seq2SeqLm& model, DType dtype, bool masked, const Dim& sources,
                       DType cache_dtype) {
  Graph g("encode");
  const Dim S("source_length");
  pretrained::Seq2SeqInputs inputs{.ids = g.input("input_ids", i64, {sources, S}), .decoder_ids = {}, .dtype = dtype};
  if (masked) inputs.mask = g.input("attention_mask", i64, {sources, S});
  model.keep_source(model.encode(inputs).back(), cache_dtype);
  return g.finish();
}

ir::Graph step_graph(const pretrained::Seq2SeqLm& model, DType dtype, bool masked, bool beams, const Dim& B,
                     DType cache_dtype) {
  Graph g(beams ? "beams" : "step");
  const nn::SourceCache source{.sources = beams ? Dim("sources", 1) : B, .dtype = cache_dtype};
  pretrained::Seq2SeqStep step{.ids = g.input("decoder_input_ids", i64, {B, 1}),
                               .cache = {.dtype = cache_dtype},
                               .source = source,
                               .dtype = dtype};
  if (beams) step.cache.parents = g.input("parents", i64, {B});
  if (masked) step.mask = g.input("attention_mask", i64, {source.sources, source.length});
  const Tensor hidden = model.step(step);                                     // [B, 1, hidden]
  g.output("logits", model.head(hidden.squeeze(1)).to(at_least_f32(dtype)));  // [B, vocab]
  return g.finish();
}

}  // namespace

ir::Graph CachedSeq2Seq::graph(const pretrained::Seq2SeqLm& model, Kind kind, DType dtype, bool masked,
                               const Dim& batch, std::optional<DType> cache_dtype) {
  const DType kept = cache_dtype.value_or(default_cache_dtype(model, dtype));
  if (kind == Kind::encode) return encode_graph(model, dtype, masked, batch, kept);
  return step_graph(model, dtype, masked, kind == Kind::beams, batch, kept);
}

struct CachedSeq2Seq::Side {
  Parameters store;
  CacheStates states = {};
  std::map<std::pair<Kind, bool>, Executable> compiled = {};
};

CachedSeq2Seq::CachedSeq2Seq(const pretrained::Seq2SeqLm& model, const Parameters& weights,
                             const SequenceModelOptions& options)
    : model_(model), options_(options), sides_(std::make_unique<std::map<Work, Side>>()) {
  for (const Work work : {Work::one, Work::several, Work::beams}) sides_->emplace(work, Side{weights.borrowed()});
}

CachedSeq2Seq::~CachedSeq2Seq() = default;
CachedSeq2Seq::CachedSeq2Seq(CachedSeq2Seq&&) noexcept = default;

std::vector<SequenceModel::TokenId> CachedSeq2Seq::opening(const std::vector<TokenId>& /*prompt*/) const {
  return {model_.start_token()};
}

std::int64_t CachedSeq2Seq::vocabulary_size() const { return model_.vocabulary_size(); }
std::int64_t CachedSeq2Seq::most_positions() const { return std::numeric_limits<std::int64_t>::max(); }

Executable& CachedSeq2Seq::compiled(Kind kind) {
  Side& side = sides_->at(work_);
  const auto found = side.compiled.find({kind, is_masked_});
  if (found != side.compiled.end()) return found->second;
  const bool one = work_ == Work::one || (work_ == Work::beams && kind == Kind::encode);
  const ir::Graph made =
      graph(model_, kind, options_.dtype, is_masked_, one ? Dim("B", 1) : Dim("B"), options_.cache_dtype);
  if (kind != Kind::encode) side.states.learn(made);
  return side.compiled.emplace(std::pair(kind, is_masked_), compile_over(side.store, made, options_)).first->second;
}

void CachedSeq2Seq::make_room(bool keep) {
  capacity_ = CacheStates::capacity(capacity_, length_, most_positions());
  Side& side = sides_->at(work_);
  side.states.fit(side.store, {{"B", batch_}, {"capacity", capacity_}, {"source_length", source_length_}}, keep);
}

/// Runs the encoder on the prompts and prepares `sequences` decoder sequences.
void CachedSeq2Seq::read(std::span<const std::vector<TokenId>> prompts, Work work, std::int64_t sequences) {
  check_prompts(prompts);
  for (auto& [of, side] : *sides_)
    if (of != work) side.states.erase(side.store);
  work_ = work;
  batch_ = sequences;
  sources_ = std::ssize(prompts);
  length_ = 0;
  source_length_ = 0;
  for (const std::vector<TokenId>& prompt : prompts) source_length_ = std::max(source_length_, std::ssize(prompt));
  is_masked_ = std::any_of(prompts.begin(), prompts.end(),
                           [&](const auto& prompt) { return std::ssize(prompt) != source_length_; });
  HostTensor ids(i64, {sources_, source_length_});
  mask_ = HostTensor(i64, {sources_, source_length_});
  for (std::int64_t i = 0; i < sources_; ++i) {
    const std::vector<TokenId>& prompt = prompts[i];
    for (std::int64_t s = 0; s < source_length_; ++s) {
      const bool is_token = s < std::ssize(prompt);
      ids.set_int(i * source_length_ + s, is_token ? prompt[s] : model_.padding());
      mask_.set_int(i * source_length_ + s, is_token ? 1 : 0);
    }
  }
  compiled(work == Work::beams ? Kind::beams : Kind::step);  // also records the states
  make_room(false);
  InputRefs inputs{{"input_ids", ids}};
  if (is_masked_) inputs.emplace("attention_mask", mask_);
  compiled(Kind::encode).run(inputs, {});
  logits_ = HostTensor(at_least_f32(options_.dtype), {batch_, model_.vocabulary_size()});
}

/// Adds a token to each sequence and computes the logits of the next one.
const HostTensor& CachedSeq2Seq::next(std::span<const TokenId> tokens, std::span<const std::int64_t> parents) {
  ++length_;
  make_room(true);
  last_.assign(tokens.begin(), tokens.end());
  HostTensor ids(i64, {batch_, 1}), from(i64, {batch_});
  for (std::int64_t i = 0; i < batch_; ++i) {
    ids.set_int(i, tokens[i]);
    if (!parents.empty()) from.set_int(i, parents[i]);
  }
  InputRefs inputs{{"decoder_input_ids", ids}};
  if (work_ == Work::beams) inputs.emplace("parents", from);
  if (is_masked_) inputs.emplace("attention_mask", mask_);
  compiled(work_ == Work::beams ? Kind::beams : Kind::step).run(inputs, {{"logits", logits_}}, {{"length", length_}});
  return logits_;
}

const HostTensor& CachedSeq2Seq::start(std::span<const std::vector<TokenId>> prompts) {
  const std::int64_t count = std::ssize(prompts);
  read(prompts, count == 1 ? Work::one : Work::several, count);
  return next(std::vector<TokenId>(prompts.size(), model_.start_token()));
}

const HostTensor& CachedSeq2Seq::step(std::span<const TokenId> tokens, const std::vector<bool>& done) {
  check_step(tokens, done, work_ == Work::beams ? 0 : batch_);
  // A sequence that has ended repeats its last token; its logits are ignored.
  std::vector<TokenId> given(tokens.begin(), tokens.end());
  for (std::size_t i = 0; i < done.size(); ++i)
    if (done[i]) given[i] = last_[i];
  return next(given);
}

std::vector<SequenceModel::TokenId> CachedSeq2Seq::greedy(const std::vector<TokenId>& prompt, std::int64_t longest,
                                                          std::span<const TokenId> end_tokens) {
  std::vector<TokenId> tokens;
  start({&prompt, 1});
  while (std::ssize(tokens) < longest) {
    tokens.push_back(lathe::greedy(logits_row(logits_, 0)));
    if (std::find(end_tokens.begin(), end_tokens.end(), tokens.back()) != end_tokens.end()) break;
    if (std::ssize(tokens) < longest) step({&tokens.back(), 1});
  }
  return tokens;
}

std::vector<Beam> CachedSeq2Seq::beams(const std::vector<TokenId>& prompt, const BeamOptions& options) {
  check(options);
  read({&prompt, 1}, Work::beams, options.width);
  return search_beams({model_.start_token()}, nullptr, options,
                      [&](auto tokens, auto parents) -> const HostTensor& { return next(tokens, parents); });
}

}  // namespace lathe
