#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/init.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// The start of one argument. Element i of the argument `name` depends on (seed, name, i) alone, so that adding or
/// reordering parameters changes no other. Throws UserError [init_options], and [init_values] where a list has
/// another number of elements.
HostTensor initial_value(const Init& init, std::string_view name, DType dtype, const std::vector<std::int64_t>& sizes,
                         std::uint64_t seed);

/// The start of every parameter and state of the graph: as `initializers` say by name, zeros for the rest (the states
/// of optimizers start so). `bindings` give the dims that their shapes name [dim_unbound]. The state "rng" becomes
/// {seed, 0}.
Tensors initial_values(const ir::Graph& graph, std::span<const Initializer> initializers, std::uint64_t seed,
                       const DimBindings& bindings = {});

/// One of these, by its name: for values that are wanted one after the other. UserError [argument_unknown] too.
HostTensor initial_value(const ir::Graph& graph, std::string_view name, std::span<const Initializer> initializers,
                         std::uint64_t seed, const DimBindings& bindings = {});

/// The same of the states alone: what a training step needs besides a model whose parameters have their values.
Tensors initial_states(const ir::Graph& graph, std::uint64_t seed, const DimBindings& bindings = {});

}  // namespace lathe
