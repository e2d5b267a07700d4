#include <lathe/lathe.h>

#include <cmath>
#include <cstdio>

using namespace lathe;

/// The batch of all processes: [32, 16].
HostTensor batch(std::int64_t number) {
  HostTensor x(f32, {32, 16});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.set(i, std::sin(static_cast<double>((number * 512 + i) * (i % 16 + 1) % 97)));
  return x;
}

int main() {
  const Dim B{"B"}, d_model{"d_model", 16}, d_ff{"d_ff", 64};
  Graph g{"feed_forward"};
  const Tensor x = g.input("x", f32, {B, d_model});
  const nn::Linear up(g, "up", d_model, d_ff), down(g, "down", d_ff, d_model);
  const Tensor loss = mse_loss(down(gelu(up(x))), x);
  g.output("loss", loss);
  const ir::Graph step = training_step(g, loss, AdamW{.lr = 1e-2});
  const Tensors start = initial_values(step, g.initializers(), /*seed=*/1);

  Mesh mesh{{"data", 2}, {"model", 2}};
  Executable exe = compile(step, {.mesh = mesh, .split = {{B, "data"}, {d_ff, "model"}}, .shard_states = "data"});

  Ranks& ranks = *exe.ranks();
  const auto own = [&](const std::string& name, const HostTensor& whole) {
    return own_part(ranks, whole, exe.placements().at(name), name);
  };
  for (const auto& [name, value] : start) exe.parameters().set(name, own(name, value));
  double last = 0;
  for (int i = 0; i < 20; ++i) last = exe.run({{"x", own("x", batch(i))}}).at("loss").item();

  // A single process gets the same loss.
  if (ranks.rank() != 0) return 0;
  Executable one = compile(step);
  for (const auto& [name, value] : start) one.parameters().set(name, value);
  double alone = 0;
  for (int i = 0; i < 20; ++i) alone = one.run({{"x", batch(i)}}).at("loss").item();
  std::printf("after 20 steps the loss is %.4f on %s and %.4f on one process\n", last, mesh.to_string().c_str(),
              alone);
  return std::abs(last - alone) < 2e-5 ? 0 : 1;
}
