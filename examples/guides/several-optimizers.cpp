#include <lathe/lathe.h>

#include <cstdio>

using namespace lathe;

struct Mlp : nn::Layer<Mlp> {
  Mlp(const Module& parent, std::string_view name, const Dim& in, const Dim& out)
      : Layer(parent, name, "Mlp"), up(*this, "up", in, 32), down(*this, "down", 32, out) {}
  Tensor forward(const Tensor& x) const { return down(relu(up(x))); }
  nn::Linear up, down;
};

Tensor judged(const Tensor& logits, double target) {
  return binary_cross_entropy_with_logits(logits, logits.graph().full(logits.shape(), target, f32));
}

void print_note(std::string_view note) { std::printf("%s\n", std::string(note).c_str()); }

Tensors real_numbers(std::int64_t step) {
  const Init near_3 = Init::normal({.mean = 3, .deviation = 0.5});
  return {{"real", initial_value(near_3, "real", f32, {64, 1}, static_cast<std::uint64_t>(step))}};
}

void gan() {
  const nn::Module model("Gan");
  const Mlp generator(model, "generator", 2, 1), critic(model, "critic", 1, 1);
  const Dim B{"B"};

  Graph judging{"judging"};
  const Tensor real = judging.input("real", f32, {B, 1});
  const Tensor fake = generator(judging.random_normal({B, 2}, f32)).detach();
  const ir::Graph critic_step =
      training_step(judging, judged(critic(real), 1) + judged(critic(fake), 0), Adam{.lr = 1e-3, .beta1 = 0.5},
                    {.name = "critic", .trainable = nn::trainable(critic), .note = print_note});

  Graph making{"making"};
  const Tensor made = generator(making.random_normal({64, 2}, f32));
  const ir::Graph generator_step =
      training_step(making, judged(critic(made), 1), Adam{.lr = 1e-3, .beta1 = 0.5},
                    {.name = "generator", .trainable = nn::trainable(generator), .note = print_note});

  Tensors start = model.initial_values(/*seed=*/1);
  start.merge(initial_states(critic_step, /*seed=*/1));
  start.merge(initial_states(generator_step, /*seed=*/1));
  Trainer trainer(critic_step, start, {.extra_steps = {{.name = "generator", .graph = generator_step, .every = 2}}});
  trainer.run(real_numbers, 40);
  for (const char* name : {"optimizer.critic.step", "optimizer.generator.step"})
    std::printf("%s: %d\n", name, trainer.parameters().get(name).item<int>());
}

void without_names() {
  const nn::Module model("Model");
  const Mlp body(model, "body", 1, 1);
  const auto step_of = [&](const char* name) {
    Graph g{name};
    return training_step(g, square(body(g.input("x", f32, {8, 1}))).mean(), Adam{.lr = 1e-3});
  };
  const Parameters store(model.initial_values(1));
  Executable one = compile(step_of("one"), {.parameters = store});
  try {
    Executable other = compile(step_of("other"), {.parameters = store});
  } catch (const UserError& error) {
    std::printf("%s\n", error.what());
  }
}

struct Agent : nn::Module {
  explicit Agent(const Module& parent)
      : Module(parent, "agent", "Agent"),
        body(*this, "body", 4, 16),
        policy(*this, "policy", 16, 2),
        value(*this, "value", 16, 1) {}
  Mlp body;
  nn::Linear policy, value;
};

void actor_critic() {
  const nn::Module model("Model");
  const Agent agent(model);
  agent.value.set_group("value");
  Graph g{"actor_critic"};
  const Dim B{"B"};
  const Tensor seen = relu(agent.body(g.input("observations", f32, {B, 4})));
  const Tensor actions = g.input("actions", i64, {B}), returns = g.input("returns", f32, {B});

  const Tensor values = agent.value(seen).squeeze(1);
  const Tensor chosen = take_along(log_softmax(agent.policy(seen), 1), actions.unsqueeze(1), 1).squeeze(1);
  const Tensor policy_loss = -(chosen * (returns - values).detach()).mean();
  const ir::Graph step = training_step(
      g, policy_loss + mse_loss(values, returns) * 0.5, Adam{.lr = 3e-4},
      {.groups = {{.name = "value", .parameters = nn::in_group(model, "value"), .optimizer = Adam{.lr = 1e-3}}}});

  Executable train = compile(step, {.parameters = Parameters(model.initial_values(1))});
  train.parameters().set(initial_states(step, 1));
  const Tensors out = train.run({{"observations", HostTensor(f32, {3, 4})},
                                 {"actions", HostTensor::of<std::int64_t>({3}, {0, 1, 0})},
                                 {"returns", HostTensor::of<float>({3}, {1, 0, 1})}});
  std::printf("rates: %g, %g of the value's layer\n", out.at("learning_rate").item(),
              out.at("learning_rate.value").item());
}

int main() {
  gan();
  without_names();
  actor_critic();
}
