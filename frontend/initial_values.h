#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/options/init.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// Returns the initial value of one argument. Element i of argument `name` depends only on (seed, name, i), so adding
/// or reordering parameters changes no other one. Throws UserError [init_options], and [init_values] if a list has
/// the wrong number of elements.
HostTensor initial_value(const Init& init, std::string_view name, DType dtype, const std::vector<std::int64_t>& sizes,
                         std::uint64_t seed);

/// Returns the initial values of all parameters and states of the graph: by `initializers`, which are looked up by
/// name, and zeros for the rest (such as optimizer states). `bindings` are the sizes of symbolic dims in their shapes
/// [dim_unbound]. The state "rng" becomes {seed, 0}.
Tensors initial_values(const ir::Graph& graph, std::span<const Initializer> initializers, std::uint64_t seed,
                       const DimBindings& bindings = {});

/// Returns the initial value of one parameter or state, to create them one at a time. Throws UserError
/// [argument_unknown] too.
HostTensor initial_value(const ir::Graph& graph, std::string_view name, std::span<const Initializer> initializers,
                         std::uint64_t seed, const DimBindings& bindings = {});

/// Returns the initial values of the states only, for a training step whose parameters already have values.
Tensors initial_states(const ir::Graph& graph, std::uint64_t seed, const DimBindings& bindings = {});

}  // namespace lathe
