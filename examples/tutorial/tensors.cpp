#include <lathe/lathe.h>

#include <cstdio>

using namespace lathe;

int main() {
  const Dim B{"B"}, S{"S"};            // any size, chosen by each run
  const Dim h{"h", 4}, d_k{"d_k", 8};  // known sizes, with names
  const Dim d_model{"d_model", h * d_k};

  Graph g{"heads"};
  const Tensor x = g.input("x", f32, {B, S, d_model});
  const Tensor w = g.parameter("W_q", f32, {d_model, d_model});
  const Tensor q = linear(x, w).view({B, S, h, d_k}).transpose(1, 2);
  g.output("q", q);

  std::puts(ir::print(g.ir(), {.locations = false}).c_str());
  std::puts(ir::explain(g.ir()).c_str());

  try {
    (void)linear(x, w).view({B, S, h, d_model});
  } catch (const UserError& error) {
    std::puts(error.what());
  }
}
