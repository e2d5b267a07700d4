#include "models/import/onnx/ops/networks/attention_heads.h"

#include <fmt/core.h>

#include <limits>

namespace lathe::onnx {

Tensor split_heads(const OpCall& call, const Tensor& x, std::int64_t heads) {
  const std::optional<Dim> size = heads > 0 ? x.size(2).divided_by(heads) : std::nullopt;
  if (!size)
    call.fail(fmt::format("{} columns do not divide into {} heads", x.size(2).to_string(), heads),
              "import_attribute");
  return x.reshape({x.size(0), x.size(1), heads, *size}).transpose(1, 2);
}

Tensor merged_heads(const Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor repeated_heads(const OpCall& call, const Tensor& x, const Dim& heads) {
  if (x.size(1) == heads) return x;
  const std::optional<Dim> times = heads.divided_by(x.size(1));
  if (!times || !times->value()) call.fail("the query heads are no multiple of the key heads", "import_size");
  return x.repeat_interleave(*times->value(), 1);
}

Tensor rotated_heads(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  const Tensor c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  const Dim size = x.size(3).unnamed(), part = cos.size(2).unnamed() * Dim(2);
  const Tensor first = part == size ? x : x.slice(3, 0, part);
  Tensor y;
  if (interleaved) {
    const Tensor a = first.slice(3, 0, part, 2), b = first.slice(3, 1, part, 2);
    y = stack({c * a - s * b, s * a + c * b}, -1).reshape(first.shape());
  } else {
    y = rope(first, concat({c, c}, 3), concat({s, s}, 3));
  }
  return part == size ? y : concat({y, x.slice(3, part, size)}, 3);
}

Tensor with_mask(const Tensor& scores, const Tensor& mask) {
  if (mask.dtype() != boolean) return scores + mask.to(scores.dtype());
  return where(mask, scores, scores.graph().constant(-std::numeric_limits<double>::infinity(), scores.dtype()));
}

}  // namespace lathe::onnx
