#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

/// Arguments need a name and a type, so only GraphBuilder::argument creates them.
TensorType argument_infer(const InferContext& ctx) {
  ctx.fail("argument_name", "an argument has no name or type yet", "declare it in the signature of the graph");
}

constexpr std::string_view argument_labels[] = {"argument_name"};
constexpr NotDifferentiable argument{"an argument has no operands to pass a gradient to"};

constexpr Op record(std::string_view name, std::string_view doc) {
  return Op{.name = name,
            .doc = doc,
            .arity = Arity{0, 0},
            .attrs = std::span<const AttrSpec>(),
            .labels = argument_labels,
            .infer = argument_infer,
            .meaning = Argument{},
            .precision = MixedPrecision::follow,
            .gradient = argument,
            .samples = [] { return std::vector<Sample>(); }};
}

}  // namespace

constinit const Op input = record("input", "an argument that is passed to each run");
constinit const Op parameter = record("parameter", "a trained argument: kept between runs, may be updated in place");
constinit const Op state =
    record("state", "an argument kept between runs that is not trained: moments, seeds, steps");

}  // namespace lathe::ir::ops
