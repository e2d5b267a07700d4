#include "frontend/pretrained/seq2seq/generate.h"

#include <algorithm>

#include "frontend/decoding.h"

namespace lathe::pretrained {

namespace {

Executable compiled(const Graph& g, const PretrainedSeq2SeqLm& model, CompileOptions options) {
  options.parameters = model.weights;
  options.mode = Mode::evaluation;
  return compile(g.finish(), options);
}

/// input_ids [1, S] -> memory [1, S, hidden].
Executable encoder_of(const PretrainedSeq2SeqLm& model, DType dtype, const CompileOptions& options) {
  Graph g{"encode"};
  const Tensor ids = g.input("input_ids", i64, {1, Dim("S")});
  g.output("memory", model.model->encode({.ids = ids, .decoder_ids = {}, .dtype = dtype}).back());
  return compiled(g, model, options);
}

/// memory [1, S, hidden], decoder_input_ids [B, T] -> logits [B, vocab] after the last token.
Executable decoder_of(const PretrainedSeq2SeqLm& model, DType dtype, const CompileOptions& options) {
  Graph g{"decode"};
  const Dim B{"B"}, T{"T"}, S{"S"}, &width = model.model->width();
  const Tensor ids = g.input("decoder_input_ids", i64, {B, T});
  const Tensor memory = g.input("memory", dtype, {1, S, width}).expand({B, S, width});
  const Tensor states = model.model->decode({.ids = {}, .decoder_ids = ids, .dtype = dtype}, memory).back();
  g.output("logits", model.model->head(states.select(1, T - 1)));
  return compiled(g, model, options);
}

HostTensor matrix(std::span<const std::vector<std::int64_t>> rows) {
  HostTensor result(i64, {std::ssize(rows), std::ssize(rows.front())});
  std::int64_t at = 0;
  for (const std::vector<std::int64_t>& row : rows)
    for (const std::int64_t id : row) result.set_int(at++, id);
  return result;
}

}  // namespace

Seq2SeqGenerator::Seq2SeqGenerator(PretrainedSeq2SeqLm model, DType dtype, CompileOptions options)
    : model_(std::move(model)),
      encode_(encoder_of(model_, dtype, options)),
      decode_(decoder_of(model_, dtype, options)) {}

HostTensor Seq2SeqGenerator::read(const std::vector<std::int64_t>& ids) {
  return encode_.run({{"input_ids", matrix({&ids, 1})}}).at("memory");
}

std::vector<std::vector<double>> Seq2SeqGenerator::next(const HostTensor& memory,
                                                        std::span<const std::vector<std::int64_t>> sequences) {
  const HostTensor logits = decode_.run({{"memory", memory}, {"decoder_input_ids", matrix(sequences)}}).at("logits");
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < std::ssize(sequences); ++i) rows.push_back(logits_row(logits, i));
  return rows;
}

std::vector<std::int64_t> Seq2SeqGenerator::greedy(const std::vector<std::int64_t>& ids, std::int64_t longest,
                                                   const std::vector<std::int64_t>& end_tokens) {
  const HostTensor memory = read(ids);
  std::vector<std::int64_t> tokens{model().start_token()};
  while (std::ssize(tokens) <= longest) {
    tokens.push_back(lathe::greedy(next(memory, {&tokens, 1}).front()));
    if (std::find(end_tokens.begin(), end_tokens.end(), tokens.back()) != end_tokens.end()) break;
  }
  tokens.erase(tokens.begin());
  return tokens;
}

std::vector<Beam> Seq2SeqGenerator::beams(const std::vector<std::int64_t>& ids, const BeamOptions& options) {
  const HostTensor memory = read(ids);
  return beam_search({model().start_token()}, options, [&](auto sequences) { return next(memory, sequences); });
}

}  // namespace lathe::pretrained
