#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "ir/support/tensors/tensor_ref.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/interpret/interpreter.h"
#include "passes/program/program.h"
#include "runtime/parameters/parameter_store.h"
#include "runtime/run/program_runner.h"

namespace lathe {

/// Converts the caller's arguments of a run to those of a runner: all arguments in the order of the program's slots,
/// and the dims that they bind. Results are kept for the next run. A run with the same shapes, or with shapes that
/// determine each dim separately, allocates nothing here.
class ArgumentBinder {
 public:
  /// `signature` and `program` must outlive it. `given` are the dims that the caller passes to every run. `fixed` are
  /// known dims with the same size in every run, which the caller does not pass.
  ArgumentBinder(const ir::Graph& signature, const Program& program, std::vector<std::string> given,
                 DimBindings fixed);

  /// Finds the program's states in the store, unless it has not changed since the last call. Throws UserError
  /// [state_unset] for a missing state that runs use; unused declared parameters need no value.
  void resolve_states(ParameterStore& store);
  std::span<StoredTensor* const> states() const { return states_; }
  /// Makes the next run look up its states again, because it uses another store.
  void forget_states() { store_ = nullptr; }

  /// Binds the inputs of the next run and the sizes that no argument determines. Throws UserErrors of ir::bind_dims,
  /// [argument_strides], [dim_unknown] for a size that must not be passed.
  const DimBindings& bind(const Tensors& inputs, const DimBindings& given);
  const DimBindings& bind(const InputRefs& inputs, const DimBindings& given);

  /// Returns the runner's arguments. Outputs reuse tensors of the right type and are allocated otherwise, or are
  /// written where the caller requests. Throws UserErrors [output_unknown], [output_missing], [output_type],
  /// [output_overlap], [argument_strides].
  RunArguments arguments(Tensors& outputs);
  RunArguments arguments(const OutputRefs& outputs);
  /// Returns copies of the arguments of this run with these names.
  Tensors copies(std::span<const std::string> names) const;
  const DimBindings& dims() const { return dims_; }
  /// Copies outputs that are not dense to the caller's memory after the run.
  void finish(const OutputRefs& outputs);
  void finish(const Tensors&) {}

 private:
  struct Given {
    DType dtype;
    const std::vector<std::int64_t>* shape;
    const std::byte* data;
  };
  template <class Inputs, class See>
  const DimBindings& bind_all(const Inputs& inputs, const DimBindings& given, const See& see);
  bool is_as_before(const DimBindings& given) const;
  void find_sources();
  bool bind_again(const DimBindings& given);
  void bind_anew(const std::map<std::string, ir::ArgumentShape>& inputs, const DimBindings& given);
  const std::byte* dense(const ConstTensorRef& tensor, std::size_t slot);
  void check_given(const DimBindings& given) const;
  template <class Outputs>
  void check_overlaps(const Outputs& outputs) const;
  RunArguments arguments() const { return {dims_, inputs_, states_, outputs_}; }

  const ir::Graph& signature_;
  const Program& program_;
  const std::vector<std::string> required_dims_;
  const DimBindings fixed_;
  const ParameterStore* store_ = nullptr;
  std::uint64_t version_ = 0;                      ///< of the store in which states_ were found
  std::vector<StoredTensor*> states_;              ///< by slot
  std::map<std::size_t, StoredTensor> stand_ins_;  ///< zeros for unset states that no run uses, by slot
  std::vector<Given> given_;                       ///< inputs of this run, by slot
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::vector<HostTensor> dense_inputs_, dense_outputs_;  ///< copies of arguments that are not row-major, by slot

  /// A dim of an input that is linear in one unknown of the graph: its size is rest + slope * unknown.
  struct Source {
    std::size_t input, dim;
    std::string unknown;
    std::int64_t rest, slope;
  };
  std::vector<Source> sources_;  ///< of all unknown dims of inputs, in order
  /// Unknown dims of states, and their sizes.
  std::vector<std::pair<Dim, std::int64_t>> state_dims_;
  bool dims_are_linear_ = false;  ///< inputs of other shapes can be bound by the two members above

  bool bound_ = false;
  DimBindings dims_, given_dims_;
  std::vector<std::vector<std::int64_t>> input_shapes_, output_shapes_;  ///< for which dims_ was computed
};

}  // namespace lathe
