#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

/// This process's parts of a batch.
struct OwnInputs {
  Tensors tensors;
  InputRefs refs;
};

/// Converts the arguments of a step between the whole tensors of files and batches and this process's parts. Without
/// several processes, both are the same. Functions that all ranks must call say so.
class TrainedTensors {
 public:
  explicit TrainedTensors(std::shared_ptr<Ranks> ranks) : ranks_(std::move(ranks)) {}

  /// Returns whether this process reads and writes files: it is the only one, or rank 0.
  bool is_first() const { return !ranks_ || ranks_->rank() == 0; }

  /// Returns the part of a whole tensor that the executable uses.
  HostTensor part(const Executable& executable, const std::string& name, HostTensor whole) const;
  /// Returns the inputs of a run: the whole tensors in place, or this process's parts, which are stored in `own`.
  const InputRefs& parts(const Executable& executable, const InputRefs& wholes, OwnInputs& own) const;

  /// Returns the whole values on the first process, nothing on the others. Must be called by all ranks. Tensors that
  /// this process holds whole stay in place, in the executable's store. Throws UserError [mesh_disagree] if copies
  /// differ.
  Tensors wholes(const Executable& executable, std::span<const std::string> names) const;
  /// Sets the executable's values from a file, which only the first process has; it is null on the others. Must be
  /// called by all ranks.
  void set(const Executable& executable, std::span<const std::string> names, const SafetensorsFile* file) const;

  /// Returns whether `own` is true on any process. Must be called by all ranks.
  bool any(bool own) const;
  /// Returns the first process's value. Must be called by all ranks.
  std::string of_first(const std::string& own) const;
  Tensors of_first(const Tensors& own) const;
  /// Returns the first nonempty text in rank order. Must be called by all ranks.
  std::string first_said(const std::string& own) const;

 private:
  std::shared_ptr<Ranks> ranks_;
};

}  // namespace lathe
