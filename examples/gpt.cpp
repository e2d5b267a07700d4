// A decoder-only Transformer learns a short text by heart: one graph for forward, backward and AdamW, then sampling.
//
//   example_gpt [GOLDENS_FOLDER]

#include <fmt/core.h>

#include "examples/check_goldens.h"
#include "frontend/decode/decoding.h"
#include "frontend/initial_values.h"
#include "frontend/models/gpt.h"
#include "frontend/train/step.h"
#include "models/text/corpus.h"
#include "runtime/compile.h"

using namespace lathe;

namespace {

const std::string poem =
    "Whose woods these are I think I know.\nHis house is in the village though;\n"
    "He will not see me stopping here\nTo watch his woods fill up with snow.\n";

constexpr std::int64_t context = 40;  // context length in training and sampling

models::GptConfig config_for(const text::Vocabulary& vocabulary) {
  return {.vocab = Dim("vocab", vocabulary.size()),
          .context = Dim("context", context),
          .d_model = Dim("d_model", 64),
          .h = Dim("h", 4),
          .layers = 2};
}

/// Trains for `steps` steps and returns the parameters. Prints the loss during training.
Parameters train(const text::Vocabulary& vocabulary, const std::vector<std::int64_t>& ids, std::int64_t steps) {
  Graph g{"gpt"};
  const models::Gpt model(g, config_for(vocabulary));
  const Dim B{"B"}, T{"T"};
  const Tensor loss = model.loss(g.input("tokens", i64, {B, T + 1}));
  TrainingOptions options;
  options.clip_norm = 1;
  const AdamW optimizer{.lr = Schedule::warmup_cosine({.peak = 3e-3, .warmup = 20, .total = steps, .floor = 1e-4}),
                        .weight_decay = 0.01};
  const auto initializers = g.initializers();
  const ir::Graph graph = training_step(g, loss, optimizer, options);
  Executable step = compile(graph);
  step.parameters().set(initial_values(graph, initializers, 1));
  const text::BatchSampler batches(ids, 8, context, 1);
  for (std::int64_t i = 1; i <= steps; ++i) {
    const double value = step.run({{"tokens", batches.random(i)}}).at("loss").item();
    if (i == 1 || i % (steps / 6) == 0) fmt::print("step {:4}  loss {:.4f}\n", i, value);
  }
  return step.parameters();
}

/// Continues `prompt` greedily. Each step reads a window of the last characters.
std::string complete(const text::Vocabulary& vocabulary, const Parameters& parameters, const std::string& prompt,
                     std::size_t length) {
  Graph g{"gpt_logits"};
  const models::Gpt model(g, config_for(vocabulary));
  g.output("logits", model.logits(g.input("tokens", i64, {1, Dim{"T"}})));
  Executable forward = compile(g.finish(), {.parameters = parameters});
  std::vector<std::int64_t> ids = vocabulary.encode(prompt);
  Sampler sampler({.temperature = 0}, 1);
  while (ids.size() < length) {
    const std::int64_t size = std::min(static_cast<std::int64_t>(ids.size()), context);
    const std::vector<std::int64_t> last(ids.end() - size, ids.end());
    const auto logits = forward.run({{"tokens", HostTensor::of({1, size}, last)}}).at("logits");
    ids.push_back(sampler.next(logits_row(logits, size - 1)));
  }
  return vocabulary.decode(ids);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    const auto vocabulary = text::Vocabulary::of(poem);
    const auto parameters = train(vocabulary, vocabulary.encode(poem), 300);
    const std::string said = complete(vocabulary, parameters, "Whose woods", poem.size() - 1);
    fmt::print("\n{}\n", said);
    const bool learned = said + "\n" == poem;
    fmt::print("{}\n", learned ? "the poem is known by heart" : "NOT the poem");
    return (argc < 2 || examples::check_goldens(argv[1], {"gpt2_training", "llama_training", "mask_edges"})) &&
           learned;
  });
}
