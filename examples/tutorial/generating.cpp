#include <lathe/lathe.h>

#include <cstdio>
#include <utility>
#include <vector>

using namespace lathe;

/// Returns rows of digits, each the sum of the previous two modulo 10.
Tensors batch(std::int64_t step) {
  HostTensor tokens(i64, {32, 17});
  for (std::int64_t row = 0; row < 32; ++row) {
    std::int64_t a = (step * 7 + row) % 10, b = (step * 3 + row * row) % 10;
    for (std::int64_t i = 0; i < 17; ++i) {
      tokens.set({row, i}, a);
      a = std::exchange(b, (a + b) % 10);
    }
  }
  return {{"tokens", tokens}};
}

int main() {
  const Dim B{"B"}, T{"T"};
  const models::Gpt gpt(
      {.vocab = {"vocab", 10}, .context = {"context", 32}, .d_model = {"d_model", 48}, .h = {"h", 4}, .layers = 2});
  std::fputs(gpt.print_tree().c_str(), stdout);

  Graph loss{"loss"}, next{"next"};
  loss.output("loss", gpt.loss(loss.input("tokens", i64, {B, T + 1})));
  next.output("logits", gpt.logits(next.input("tokens", i64, {B, T})));

  const ir::Graph step = training_step(loss.finish(), "loss", AdamW{.lr = 3e-3});
  Trainer trainer(step, initial_values(step, gpt.initializers(), /*seed=*/1));
  trainer.run(batch, 300);
  std::printf("the loss is %s 0.5\n", trainer.history().training.back().loss < 0.5 ? "below" : "above");

  Executable generate = compile(next.finish(), {.mode = Mode::evaluation, .parameters = trainer.parameters()});
  Sampler sampler({.temperature = 0}, /*seed=*/1);
  std::vector<std::int64_t> tokens{1, 1};
  for (int i = 0; i < 10; ++i) {
    const HostTensor batch = HostTensor::of({1, std::ssize(tokens)}, tokens);
    const HostTensor logits = generate.run({{"tokens", batch}}).at("logits");
    tokens.push_back(sampler.next(logits_row(logits, std::ssize(tokens) - 1)));
  }
  std::printf("digits:");
  for (const std::int64_t token : tokens) std::printf(" %d", static_cast<int>(token));
  std::puts("");
}
