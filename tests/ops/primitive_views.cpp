#include <catch2/catch.hpp>

#include "ir/ops/rules/view_rules.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;
using Strides = std::vector<Dim>;

namespace {
Value counting(Interpreted& t, const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  Numbers values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return t.input(sizes, values);
}
}  // namespace

TEST_CASE("transpose and permute change only strides") {
  Interpreted t;
  const Value a = counting(t, {2, 3});
  const Value b = transpose(a, 0, -1);
  CHECK(b.shape() == Shape{3, 2});
  CHECK(b.type().strides == Strides{1, 3});
  CHECK_FALSE(b.type().is_contiguous());
  CHECK(t.numbers(b) == Numbers{0, 3, 1, 4, 2, 5});
  const Value c = permute(counting(t, {2, 1, 3}), {2, 0, 1});
  CHECK(c.shape() == Shape{3, 2, 1});
  CHECK(t.numbers(c) == Numbers{0, 3, 1, 4, 2, 5});
  CHECK(error_label([&] { transpose(a, 0, 2); }) == "dim_range");
  CHECK(error_label([&] { transpose(a, -3, 0); }) == "dim_range");
  CHECK(error_label([&] { permute(a, {0, 0}); }) == "permute_dims");
  CHECK(error_label([&] { permute(a, {0}); }) == "permute_dims");
}

TEST_CASE("expand repeats with stride 0") {
  Interpreted t;
  const Value a = counting(t, {2, 1});
  const Value b = expand(a, {3, 2, 2});
  CHECK(b.type().strides == Strides{0, 1, 0});
  CHECK(t.numbers(b) == Numbers{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(expand(a, {-1, 4}).shape() == Shape{2, 4});
  CHECK(expand(a, {2, 1}).id() == a.id());
  CHECK(error_label([&] { expand(a, {3, 1}); }) == "expand_size");
  CHECK(error_label([&] { expand(a, {2}); }) == "expand_rank");
  CHECK(error_label([&] { expand(a, {-1, 2, 1}); }) == "expand_rank");
}

TEST_CASE("slices with negative indices and steps") {
  Interpreted t;
  const Value a = counting(t, {6});
  CHECK(t.numbers(slice(a, 0, 1, 4)) == Numbers{1, 2, 3});
  CHECK(t.numbers(slice(a, 0, -2, 6)) == Numbers{4, 5});
  CHECK(t.numbers(slice(a, -1, 0, -1, 2)) == Numbers{0, 2, 4});
  CHECK(t.numbers(slice(a, 0, 1, 6, 3)) == Numbers{1, 4});
  CHECK(slice(a, 0, 3, 3).shape() == Shape{0});
  const Value m = counting(t, {2, 3});
  CHECK(t.numbers(select(m, 1, -1)) == Numbers{2, 5});
  CHECK(t.numbers(split(a, 4, 0)[1]) == Numbers{4, 5});
  CHECK(t.numbers(chunk(m, 3, 1)[1]) == Numbers{1, 4});
  CHECK(error_label([&] { slice(a, 0, 0, 7); }) == "slice_range");
  CHECK(error_label([&] { slice(a, 0, 3, 2); }) == "slice_range");
  CHECK(error_label([&] { slice(a, 0, 0, 6, 0); }) == "slice_step");
  CHECK(error_label([&] { chunk(a, 4, 0); }) == "chunk_size");
  CHECK(error_label([&] { split(a, 0, 0); }) == "split_size");
}

TEST_CASE("slices of unknown size are checked when the size is bound") {
  Interpreted t;
  const Dim n("n");
  const Value a = t.input(HostTensor::from({2}, {1, 2}, f64), {n});
  CHECK(slice(a, 0, 0, n).shape()[0] == n);
  CHECK(t.builder.graph().checks.empty());
  CHECK(slice(a, 0, 1, n).shape()[0] == n - 1);
  CHECK(t.numbers(slice(a, 0, -1, n)) == Numbers{2});
  CHECK(slice(t.input(HostTensor::from({4}, {1, 2, 3, 4}, f64), {n * 2}), 0, 0, n * 2, 2).shape()[0] == n);
  CHECK(error_label([&] { slice(a, 0, 0, n, 2); }) == "slice_step");
  const Value far = slice(a, 0, 0, 3);
  CHECK(error_label([&] { t.run(far); }) == "slice_range");
}

TEST_CASE("unsqueeze, squeeze and diagonal") {
  Interpreted t;
  const Value a = counting(t, {2, 3});
  CHECK(unsqueeze(a, 1).type().strides == Strides{3, 3, 1});
  CHECK(unsqueeze(a, -1).shape() == Shape{2, 3, 1});
  CHECK(squeeze(unsqueeze(a, 0), 0).type() == a.type());
  CHECK(error_label([&] { squeeze(a, 0); }) == "squeeze_size");
  CHECK(t.numbers(diagonal(counting(t, {2, 2, 2}), 0, 2)) == Numbers{0, 5, 2, 7});
  CHECK(error_label([&] { diagonal(a, 0, 1); }) == "diagonal_size");
  CHECK(error_label([&] { diagonal(a, 1, 1); }) == "dim_repeat");
}

TEST_CASE("the strides of a view: merged and split runs, expanded and sliced operands") {
  const Dim B("B"), S("S");
  const auto strides = [](const TensorType& type, const Shape& shape) { return rules::view_strides(type, shape); };
  const TensorType x = TensorType::contiguous(f32, {B, S, 512});
  CHECK(strides(x, {B, S, 8, 64}) == Strides{S * 512, 512, 64, 1});
  CHECK(strides(x, {B * S, 512}) == Strides{512, 1});
  // [B, h, S, d] transposed from [B, S, h, d]: h can be split, but h and S cannot be merged.
  const TensorType heads{f32, {B, 8, S, 64}, {S * 512, 64, 512, 1}};
  CHECK(strides(heads, {B, 2, 4, S, 64}) == Strides{S * 512, 256, 64, 512, 1});
  CHECK_FALSE(strides(heads, {B, S * 8, 64}));
  CHECK_FALSE(strides(heads, {B, S, 512}));
  CHECK(strides(heads, {B, 8, 1, S, 64})->size() == 5);
  // An expanded dim can only be merged with itself.
  const TensorType repeated{f32, {2, 3, 4}, {4, 0, 1}};
  CHECK_FALSE(strides(repeated, {6, 4}));
  CHECK(strides(repeated, {2, 3, 2, 2}) == Strides{4, 0, 2, 1});
  // Rows of a slice keep their stride.
  const TensorType rows{f32, {3, 4}, {10, 1}};
  CHECK(strides(rows, {3, 2, 2}) == Strides{10, 2, 1});
  CHECK_FALSE(strides(rows, {12}));
  CHECK(strides(TensorType{f32, {0, 4}, {1, 7}}, {2, 0}) == Strides{0, 1});
}

TEST_CASE("view_numel reports both products of sizes and which size is wrong") {
  Interpreted t;
  const GraphBuilder::At at(t.builder, Location("mha.cpp", 14));
  const Dim B("nbatches"), S("n_seq"), h("h", 8), d("d_k", 63), model("d_model", 512);
  const Value x = t.builder.argument(ops::input, "x", f32, {B, S, model});
  std::string text;
  CHECK(error_label([&] { view(x, {B, S, h, d}); }, &text) == "view_numel");
  CHECK(text ==
        "mha.cpp:14: view: the elements of x: f32[nbatches, n_seq, d_model=512] do not fit "
        "[nbatches, n_seq, h=8, d_k=63]  [view_numel]\n"
        "  512 != 8 * 63 = 504 per (nbatches, n_seq); did you mean d_k=64?");
  CHECK(error_label([&] { reshape(x, {B, S, 511}); }) == "view_numel");
  CHECK(error_label([&] { view(x, {B, S, h, -2}); }) == "dim_negative");
}

TEST_CASE("view_stride names the op that permuted the dims") {
  Interpreted t;
  const Dim B("B"), S("S"), h("h", 8), d("d_k", 64);
  const Value x = t.builder.argument(ops::input, "x", f32, {B, S, h, d});
  std::optional<Value> moved;
  {
    const GraphBuilder::At at(t.builder, Location("mha.cpp", 21));
    moved = transpose(x, 1, 2);
    t.builder.set_name(*moved, "o");
  }
  const GraphBuilder::At at(t.builder, Location("mha.cpp", 22));
  std::string text;
  CHECK(error_label([&] { view(*moved, {B, S, 512}); }, &text) == "view_stride");
  CHECK(text ==
        "mha.cpp:22: view: o is strided (transpose of dims 1 and 2 at mha.cpp:21), so no view of shape [B, S, 512] "
        "exists  [view_stride]\n  use .contiguous().view(...) or .reshape(...), which copies");
  CHECK(reshape(*moved, {B, S, 512}).type().is_contiguous());
  CHECK(view(contiguous(*moved), {B, S, 512}).rank() == 3);
  CHECK(contiguous(x).id() == x.id());
}

TEST_CASE("one size of a view may be inferred") {
  Interpreted t;
  const Dim B("B"), S("S");
  const Value x = t.builder.argument(ops::input, "x", f32, {B, S, 512});
  CHECK(view(x, {-1, 64}).shape() == Shape{B * S * 8, 64});
  CHECK(view(x, {B, -1, 512}).shape() == Shape{B, S, 512});
  CHECK(error_label([&] { view(x, {-1, -1}); }) == "view_infer");
  CHECK(error_label([&] { view(x, {-1, 7}); }) == "view_infer");
  CHECK(error_label([&] { view(x, {-1, 0}); }) == "view_infer");
}

TEST_CASE("reshape copies if a view is not possible") {
  Interpreted t;
  const Value a = counting(t, {2, 3});
  CHECK(t.numbers(reshape(transpose(a, 0, 1), {6})) == Numbers{0, 3, 1, 4, 2, 5});
  CHECK(t.numbers(contiguous(transpose(a, 0, 1))) == Numbers{0, 3, 1, 4, 2, 5});
  CHECK(t.numbers(flatten(a, 0, -1)).size() == 6);
  CHECK(reshape(slice(a, 1, 0, 2), {2, 1, 2}).type().strides == Strides{3, 2, 1});
  CHECK(error_label([&] { flatten(a, 1, 0); }) == "flatten_dims");
}

TEST_CASE("unknown element counts are compared when bound") {
  Interpreted t;
  const Value a = t.input(HostTensor::from({6}, {0, 1, 2, 3, 4, 5}, f64), {Dim("n")});
  const Value shape = t.input(HostTensor(f64, {2, 3}), {Dim("p"), Dim("q")});
  const Value v = view(a, shape.shape());
  CHECK(t.numbers(add(v, shape)) == Numbers{0, 1, 2, 3, 4, 5});
  Interpreted u;
  const Value b = u.input(HostTensor::from({5}, {0, 1, 2, 3, 4}, f64), {Dim("n")});
  const Value other = u.input(HostTensor(f64, {2, 3}), {Dim("p"), Dim("q")});
  const Value w = view(b, other.shape());
  CHECK(error_label([&] { u.run(w); }) == "view_numel");
}
