#include <lathe/lathe.h>

#include <cstdio>

using namespace lathe;

int main() {
  const Dim n{"n"};
  Graph g{"regression"};
  const Tensor x = g.input("x", f64, {n, 2});
  const Tensor y = g.input("y", f64, {n});
  const Tensor w = g.parameter("w", f64, {2});
  const Tensor loss = mse_loss(matmul(x, w), y);
  g.output("loss", loss);
  for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
  std::puts(ir::print(g.ir(), {.locations = false}).c_str());

  Executable exe = compile(g.finish());
  exe.parameters().set("w", HostTensor::from({2}, {1, -1}, f64));

  const Tensors three{{"x", HostTensor::from({3, 2}, {1, 2, 3, 4, 5, 6}, f64)},
                      {"y", HostTensor::from({3}, {0, 1, 2}, f64)}};
  const Tensors one{{"x", HostTensor::from({1, 2}, {1, 2}, f64)}, {"y", HostTensor::from({1}, {0}, f64)}};
  for (const Tensors& batch : {three, one}) {
    const Tensors result = exe.run(batch);
    std::printf("loss %.4f  gradient %.4f %.4f\n", result.at("loss").get(0), result.at("grad.w").get(0),
                result.at("grad.w").get(1));
  }

  const auto loss_at = [&](double first) {
    exe.parameters().set("w", HostTensor::from({2}, {first, -1}, f64));
    return exe.run(three).at("loss").get(0);
  };
  std::printf("by central differences %.4f\n", (loss_at(1 + 1e-4) - loss_at(1 - 1e-4)) / 2e-4);
}
