#pragma once

#include "ir/tensor/graph.h"
#include "tests/attention/variants/variant.h"

namespace lathe::test {

/// Returns the forward attention of a variant, in bf16 or f16, with heads of `depth` elements. With `known` sizes, no
/// dim is late-bound; others are.
ir::Graph forward_attention(const PatternVariant& variant, std::int64_t depth, std::int64_t values,
                            const DimBindings& known = {});
/// Returns the same with the gradients of a weighted sum of its result.
ir::Graph attention_with_gradients(const PatternVariant& variant, std::int64_t depth, std::int64_t values);
/// Same for a loss whose gradient needs the result, as in every model: the backward pass is a region of its own.
ir::Graph attention_in_a_model(const PatternVariant& variant, std::int64_t depth, std::int64_t values,
                               const DimBindings& known = {});

}  // namespace lathe::test
