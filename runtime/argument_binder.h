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
#include "runtime/program_runner.h"

namespace lathe {

/// Makes of what a caller gives for a run what a runner takes: every argument in the order of the program's slots,
/// and the dims that they bind. What the shapes of the run before have told is kept: a run of the same shapes, or of
/// others that tell their dims one by one, allocates nothing here.
class ArgumentBinder {
 public:
  /// `signature` and `program` must outlive it. `given`: the dims that every run is given. `fixed`: those that are
  /// known, the same in every run, which the caller does not give.
  ArgumentBinder(const ir::Graph& signature, const Program& program, std::vector<std::string> given,
                 DimBindings fixed);

  /// Finds the program's states in the store, unless it has not changed since. UserError [state_unset] for one that a
  /// run uses; a declared parameter that it does not use needs no value.
  void resolve_states(ParameterStore& store);
  std::span<StoredTensor* const> states() const { return states_; }
  /// The next run works on another store.
  void forget_states() { store_ = nullptr; }

  /// Takes the inputs of the next run, and sizes that no argument tells. UserErrors of ir::bind_dims,
  /// [argument_strides], [dim_unknown] for a size that is not to be given.
  const DimBindings& bind(const Tensors& inputs, const DimBindings& given);
  const DimBindings& bind(const InputRefs& inputs, const DimBindings& given);

  /// What the runner takes: outputs fill the tensors that fit and are made anew where none does, or lie where the
  /// caller says. UserErrors [output_unknown], [output_missing], [output_type], [output_overlap], [argument_strides].
  RunArguments arguments(Tensors& outputs);
  RunArguments arguments(const OutputRefs& outputs);
  /// Copies of the arguments of this run that have these names.
  Tensors copies(std::span<const std::string> names) const;
  const DimBindings& dims() const { return dims_; }
  /// After the run: brings outputs that are not dense to where the caller wants them.
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
  const std::vector<std::string> to_be_given_;
  const DimBindings fixed_;
  const ParameterStore* store_ = nullptr;
  std::uint64_t version_ = 0;                      ///< of the store that states_ are found in
  std::vector<StoredTensor*> states_;              ///< by slot
  std::map<std::size_t, StoredTensor> stand_ins_;  ///< zeros for unset states that no run uses, by slot
  std::vector<Given> given_;                       ///< inputs of this run, by slot
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::vector<HostTensor> dense_inputs_, dense_outputs_;  ///< copies of what is not row-major, by slot

  /// A dim of an input that tells one unknown of the graph: its size is rest + slope * the unknown.
  struct Source {
    std::size_t input, dim;
    std::string unknown;
    std::int64_t rest, slope;
  };
  std::vector<Source> sources_;  ///< of all dims of inputs that are not known, in order
  /// Of the states: dims that are not known, and their sizes.
  std::vector<std::pair<Dim, std::int64_t>> state_dims_;
  bool tells_one_by_one_ = false;  ///< whether inputs of other shapes are bound by the two above

  bool bound_ = false;
  DimBindings dims_, given_dims_;
  std::vector<std::vector<std::int64_t>> input_shapes_, output_shapes_;  ///< that belong to dims_
};

}  // namespace lathe
