#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/interpret/interpreter.h"

/// Single ops as graphs whose tensors are states, so that a run allocates nothing and results stay in place.
namespace lathe::bench {

struct OpCase {
  ir::Graph graph;
  Tensors states;
  double flops = 0;
};

/// The three matmuls of y = x W', W [n, k], for x [m, k]: y [m, n]; dX [m, k] from dy and W; dW [n, k] from dy and x.
enum class Product { forward, input_gradient, weight_gradient };
struct ProductShape {
  std::string name;
  std::int64_t m, n, k;
  Product product = Product::forward;
  double goal = 0.8;  ///< target share of the FMA peak on one thread; 0: none
  DType dtype = f32;
};
/// Returns large square matmuls, GPT-2's layers at 256 and 1024 tokens, its output layer, and, without a goal, GEMVs
/// and other small-M matmuls.
std::vector<ProductShape> product_shapes();
OpCase product_case(const ProductShape& shape);

struct AttentionShape {
  std::int64_t batch = 4, heads = 12, length, d;
  bool causal;
  DType dtype = f32;
  std::int64_t groups = 1;       ///< query heads that share keys and values
  std::int64_t window = 0;       ///< causal only: maximum columns that a row sees; 0: all
  bool stores_gradient = false;  ///< the gradient of y is in memory before it is read, as in a model
  std::string name() const;
};
/// Returns d = 64 and 128, causal and not, for lengths 128 .. 2048, or with `full` up to 8192.
std::vector<AttentionShape> attention_shapes(bool full);
/// Returns softmax(q k' / sqrt(d), masked) v, written out. With `backward`, also the gradients of q, k and v from a
/// gradient of y that depends on y. The matmuls of the backward count as 2.5 times those of the forward, because it
/// recomputes the scores. A causal mask counts as one half, a window as its columns.
OpCase attention_case(const AttentionShape& shape, bool backward);

/// x [batch, in, size..] and a kernel [out, in, kernel..], with 1 or 2 spatial dims of equal sizes.
struct ConvolutionShape {
  int spatial = 2;
  std::int64_t batch = 1, in = 1, out = 1, size = 1, kernel = 1, stride = 1, padding = 0;
};
/// Returns relu of a convolution. With `backward`, also the gradients of x and of the kernel from a gradient of the
/// result that depends on it.
OpCase convolution_case(const ConvolutionShape& shape, bool backward);

}  // namespace lathe::bench
