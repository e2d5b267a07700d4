#include <lathe/lathe.h>

#include <cstdio>

int main() {
  using namespace lathe;
  Graph g{"twice"};
  const Tensor x = g.input("x", f32, {Dim{"n"}});
  g.output("y", x * 2);
  Executable twice = compile(g.finish());
  const Tensors result = twice.run({{"x", HostTensor::from(f32, {2}, {1, 2})}});
  std::printf("%g %g\n", result.at("y").get(0), result.at("y").get(1));
}
