#include <lathe/lathe.h>

#include <algorithm>
#include <cstdio>

using namespace lathe;

CustomOp make_swish() {
  return custom_op(
      "my.swish", [](const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); },
      [](std::span<const Tensor> operands, const Tensor& y, const Tensor& grad) -> std::vector<Tensor> {
        const Tensor &x = operands[0], &beta = operands[1];
        const Tensor s = sigmoid(beta * x);
        return {grad * (s + beta * y * (1 - s)), grad * x * y * (1 - s)};
      });
}

CustomOp make_clip() {
  CustomOpRecord record;
  record.name = "my.clip";
  record.doc = "rows of numbers limited to low .. high";
  record.attrs = {{"low", ir::AttrKind::real, true, {}, "the smallest value"},
                  {"high", ir::AttrKind::real, false, 1.0, "the largest value"}};
  record.labels = {"clip_rank"};
  record.infer = [](const ir::InferContext& ctx) {
    const ir::TensorType& x = ctx.operand(0);
    ctx.require(x.rank() == 2, "clip_rank", x.to_string() + " has no rows", "give it two dims");
    return ir::TensorType::contiguous(x.dtype, x.shape);
  };
  record.forward = [](std::span<const Tensor> operands, const ir::Attributes& attrs) {
    return clamp(operands[0], attrs.get<double>("low"), attrs.get<double>("high"));
  };
  record.reference = [](std::span<const HostTensor> operands, const ir::Attributes& attrs) {
    HostTensor y = operands[0];
    for (std::int64_t i = 0; i < y.numel(); ++i)
      y.set(i, std::clamp(y.get(i), attrs.get<double>("low"), attrs.get<double>("high")));
    return y;
  };
  record.samples = {{.operands = {{.sizes = {2, 3}}}, .attrs = {{"low", -0.5}}},
                    {.operands = {{.sizes = {0, 1}}}, .attrs = {{"low", -2.0}, {"high", 0.0}}}};
  return CustomOp(std::move(record));
}

// The entry with which `lathe --ops` loads the ops, if this file is compiled as a shared library.
LATHE_OP_LIBRARY(ops) {
  ops.add(make_swish());
  ops.add(make_clip());
}

int main() {
  const CustomOp swish = make_swish(), clip = make_clip();

  check_custom_op(swish, {{.operands = {{.sizes = {2, 3}}, {.sizes = {3}}}, .attrs = {}}});
  check_custom_op(clip);

  Graph g{"gate"};
  const Tensor x = g.input("x", f64, {Dim{"n"}, 2});
  const Tensor beta = g.parameter("beta", f64, {2});
  const Tensor y = clip({swish(x, beta)}, {{"low", -0.25}});
  g.output("y", y);
  const std::string text = ir::print(g.ir(), {.locations = false});
  std::puts(text.c_str());

  const ir::Graph again = ir::parse_graph(text, ir::OpSet{swish, clip}, "gate.lathe");
  std::printf("read back: %d values\n", again.size());
  try {
    ir::parse_graph(text, "gate.lathe");
  } catch (const ParseError& error) {
    std::puts(error.what());
  }
  try {
    (void)clip({beta}, {{"low", 0.0}});
  } catch (const UserError& error) {
    std::puts(error.what());
  }

  g.output("slope", grad(y.sum(), {beta})[0]);
  Executable exe = compile(g.finish());
  exe.parameters().set("beta", HostTensor::of<double>({2}, {1, 2}));
  const Tensors result = exe.run({{"x", HostTensor::of<double>({2, 2}, {-1, 0.5, 1, 3})}});
  for (const char* name : {"y", "slope"})
    for (std::int64_t i = 0; i < result.at(name).numel(); ++i)
      std::printf("%s[%d] %.6f\n", name, static_cast<int>(i), result.at(name).get(i));
}
