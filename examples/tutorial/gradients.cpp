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
  exe.parameters().set("w", HostTensor::of<double>({2}, {1, -1}));

  const Tensors three{{"x", HostTensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6})},
                      {"y", HostTensor::of<double>({3}, {0, 1, 2})}};
  const Tensors one{{"x", HostTensor::of<double>({1, 2}, {1, 2})}, {"y", HostTensor::of<double>({1}, {0})}};
  for (const Tensors& batch : {three, one}) {
    const Tensors result = exe.run(batch);
    std::printf("loss %.4f  gradient %.4f %.4f\n", result.at("loss").item(), result.at("grad.w").get(0),
                result.at("grad.w").get(1));
  }

  const auto loss_at = [&](double first) {
    exe.parameters().set("w", HostTensor::of<double>({2}, {first, -1}));
    return exe.run(three).at("loss").item();
  };
  std::printf("by central differences %.4f\n", (loss_at(1 + 1e-4) - loss_at(1 - 1e-4)) / 2e-4);
}
