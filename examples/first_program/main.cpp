// Multi-head attention learns to turn sequences of digits round: 3 1 4 1 5 -> 5 1 4 1 3.

#include <lathe/lathe.h>
#include <cmath>
#include <cstdio>
#include <random>

using namespace lathe;

const Dim B{"nbatches"}, S{"n_seq"};  // unknown: one compilation serves every value
const Dim h{"h", 4}, d_k{"d_k", 16};  // known, and named in every dump and error
const Dim d_model{"d_model", h* d_k}, digits{"digits", 10}, positions{"positions", 32};

Tensor split_heads(const Tensor& x) { return x.view({B, S, h, d_k}).transpose(1, 2); }  // [B, h, S, d_k]

/// Predicts the digit at each position of the reversed sequence: tokens [B, S] -> logits [B, S, digits].
Tensor reversed(Graph& g, const Tensor& tokens) {
  auto weight = [&](const char* name, const Dim& out, Where at = Where::current()) {
    return g.parameter(name, f32, {out, d_model}, Init::automatic(), at);
  };
  const Tensor from_start = weight("from_start", positions).slice(0, 0, S);  // [S, d_model]
  const Tensor from_end = weight("from_end", positions).slice(0, positions - S, positions);
  const Tensor x = embedding(tokens, weight("digits", digits)) + from_start;  // [B, S, d_model]

  const Tensor q = split_heads(linear(x + from_end, weight("W_q", d_model)));  // [B, h, S, d_k]
  const Tensor k = split_heads(linear(x, weight("W_k", d_model)));
  const Tensor v = split_heads(linear(x, weight("W_v", d_model)));
  const Tensor w = softmax(matmul(q, k.transpose(-2, -1)) / std::sqrt(d_k.number()), -1);  // [B, h, S, S]
  const Tensor joined = matmul(w, v).transpose(1, 2).contiguous().view({B, S, d_model});
  return linear(linear(joined, weight("W_o", d_model)), weight("W_digits", digits));
}

/// Returns 16 random sequences of equal length and their reversals.
Tensors batch(std::int64_t step) {
  std::mt19937 random(static_cast<unsigned>(step));
  const auto count = 16, length = 2 + static_cast<int>(random() % 15);
  HostTensor tokens(i64, {count, length}), targets(i64, {count, length});
  for (int b = 0; b < count; ++b)
    for (int s = 0; s < length; ++s) {
      const auto digit = static_cast<std::int64_t>(random() % 10);
      tokens.set({b, s}, digit);
      targets.set({b, length - 1 - s}, digit);
    }
  return {{"tokens", tokens}, {"targets", targets}};
}

void report(const StepReport& at) {
  if (at.step % 50 == 0 || at.step == 1) std::printf("step %3d  loss %.4f\n", static_cast<int>(at.step), at.loss);
}

int main() try {
  Graph g{"reverse"};
  const Tensor logits = reversed(g, g.input("tokens", i64, {B, S}));
  g.output("logits", logits);
  const ir::Graph model = g.finish();  // the trained model without targets and loss
  const Tensor loss = cross_entropy(logits, g.input("targets", i64, {B, S}));
  std::puts(ir::print(g.ir()).c_str());

  const ir::Graph step = training_step(g, loss, AdamW{.lr = 3e-3});  // forward, backward and update: one graph
  Trainer trainer(step, initial_values(step, g.initializers(), /*seed=*/1), {.after_step = report});
  trainer.run(batch, 200);

  Executable trained = compile(model, {.mode = Mode::evaluation, .parameters = trainer.parameters()});
  const HostTensor pi = HostTensor::of<std::int64_t>({1, 5}, {3, 1, 4, 1, 5});
  const HostTensor rows = trained.run({{"tokens", pi}}).at("logits");
  std::printf("3 1 4 1 5 ->");
  for (std::int64_t s = 0; s < 5; ++s) std::printf(" %d", static_cast<int>(greedy(logits_row(rows, s))));
  std::puts("");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
