#include <lathe/lathe.h>

using namespace lathe;

/// Writes a training step of a small GPT as a C library: write_gpt FOLDER
int main(int, char** argv) {
  Graph g("gpt");
  const models::GptConfig config{
      .vocab = {"vocab", 31}, .context = {"context", 16}, .d_model = {"d", 32}, .h = {"h", 4}, .layers = 2};
  const models::Gpt model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  const LibraryGraph graphs[] = {{"", training_step(g, model.loss(tokens), AdamW{.lr = 1e-2})}};
  const LibraryOptions options{.prefix = "gpt", .most = {{"B", 4}, {"T", 16}}, .initializers = g.initializers()};
  write_library(argv[1], emit_library(graphs, options));
}
