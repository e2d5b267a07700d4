#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// Examples for a graph: one tensor per input, by its name. The first dim of each tensor counts the examples.
class TensorRows {
 public:
  /// Reads a .safetensors or an .npz file. Throws the UserErrors of SafetensorsFile, NpzFile and the constructor.
  static TensorRows read(const std::filesystem::path& file);
  /// Throws UserError [finetune_data] for tensors without a first dim, or with different numbers of examples, and if
  /// there is no example. `source` names the file in errors.
  TensorRows(Tensors tensors, std::string source);

  std::int64_t count() const { return count_; }
  const Tensors& tensors() const { return tensors_; }

  /// Adds a tensor without elements for each input whose name starts with `prefix` and that the examples lack: its
  /// unknown sizes but the batch are 0. Inputs without such sizes stay missing. Returns the number of added tensors.
  std::int64_t add_empty(const ir::Graph& graph, std::string_view prefix);
  /// Converts the tensors to the dtypes of the graph's inputs: floats to floats, integers to integers. Throws
  /// UserError [finetune_data] if the inputs differ from the tensors in names, in kinds of numbers or in known sizes,
  /// or if an input has a first dim that is not the batch. `batch` is the number of examples per batch.
  void fit(const ir::Graph& graph, std::int64_t batch);
  /// Returns the sizes of the graph's unknown dims, which follow from the tensors and the number of examples per
  /// batch. Must be called after fit(). Throws the UserErrors of bind_dims() for sizes that disagree.
  DimBindings sizes(const ir::Graph& graph, std::int64_t batch) const;

  /// Copies the examples with these numbers to `batch`, in this order. Tensors of the batch that have the right
  /// dtypes and shapes are reused.
  void gather(std::span<const std::uint32_t> rows, Tensors& batch) const;
  /// Returns two parts: a share of the examples, at least one, chosen by `seed`, and the rest. Throws UserError
  /// [finetune_valid] for fewer than two examples.
  std::pair<TensorRows, TensorRows> split_off(double share, std::uint64_t seed) const;
  /// Returns the SHA-256 of names, dtypes, shapes and values.
  std::string hash() const;

 private:
  TensorRows part(std::span<const std::uint32_t> rows) const;

  Tensors tensors_;
  std::string source_;
  std::int64_t count_ = 0;
};

}  // namespace lathe
