#include <lathe/lathe.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

using namespace lathe;

/// Returns 64 pairs of numbers from 0 to 1 and whether they differ by more than a half. The seed determines the
/// pairs.
Tensors batch(std::int64_t seed) {
  HostTensor x(f32, {64, 2}), y(f32, {64});
  for (std::int64_t i = 0; i < 64; ++i) {
    const double a = static_cast<double>((seed * 64 + i) * 29 % 101) / 100;
    const double b = static_cast<double>((seed * 64 + i) * 71 % 103) / 102;
    x.set(2 * i, a), x.set(2 * i + 1, b);
    y.set(i, std::abs(a - b) > 0.5 ? 1 : 0);
  }
  return {{"x", x}, {"y", y}};
}

int main() {
  const Dim n{"n"}, hidden{"hidden", 32};
  Graph g{"far_apart"};
  const Tensor x = g.input("x", f32, {n, 2});
  const Tensor y = g.input("y", f32, {n});
  const nn::Linear first(g, "first", 2, hidden), second(g, "second", hidden, 1);
  const Tensor logits = second(relu(first(x))).squeeze(-1);
  const Tensor loss = binary_cross_entropy_with_logits(logits, y);
  g.output("loss", loss);

  const ir::Graph step = training_step(g, loss, AdamW{.lr = 0.02});
  const Tensors start = initial_values(step, g.initializers(), /*seed=*/1);
  const Evaluation held_out{.graph = g.finish(), .batches = [](std::int64_t i) { return batch(1000 + i); }};

  Trainer whole(step, start, {.evaluation = held_out});
  whole.run(batch, 300);
  for (const LossPoint& point : whole.history().evaluation)
    std::printf("step %d: held out the loss is %s 0.2\n", static_cast<int>(point.step),
                point.loss < 0.2 ? "below" : "above");

  for (const int last : {120, 300}) {
    Trainer part(step, start, {.evaluation = held_out, .folder = RunFolder("far_apart")});
    std::printf("from step %d to %d\n", static_cast<int>(part.step()), last);
    part.run(batch, last);
    if (last == 300)
      std::printf("resumed, it has %s\n", part.evaluate() == whole.evaluate() ? "the same loss" : "another loss");
  }
  std::filesystem::remove_all("far_apart");
}
