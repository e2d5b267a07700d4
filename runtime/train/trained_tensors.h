#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/files/safetensors.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

/// The parts of a batch that one of several processes holds.
struct OwnInputs {
  Tensors tensors;
  InputRefs refs;
};

/// The arguments of a step between how files and batches have them, whole, and how this process holds them: as they
/// are, or as its parts where the step runs on several. Where all ranks call a function it says so.
class TrainedTensors {
 public:
  explicit TrainedTensors(std::shared_ptr<Ranks> ranks) : ranks_(std::move(ranks)) {}

  /// Files are this process's to read and write: it is the only one, or rank 0.
  bool is_first() const { return !ranks_ || ranks_->rank() == 0; }

  /// What an executable works on, of whole tensors.
  HostTensor part(const Executable& executable, const std::string& name, HostTensor whole) const;
  /// The inputs of a run: the whole ones where they lie, or this process's parts of them, which `own` keeps.
  const InputRefs& parts(const Executable& executable, const InputRefs& wholes, OwnInputs& own) const;

  /// Whole values on the first process, nothing on the others; all ranks call it. What this process holds whole stays
  /// where it lies, in the store of the executable. UserError [mesh_disagree] where copies differ.
  Tensors wholes(const Executable& executable, std::span<const std::string> names) const;
  /// Sets the executable's values to those of a file, which the first process has; null on the others. All ranks call
  /// it.
  void set(const Executable& executable, std::span<const std::string> names, const SafetensorsFile* file) const;

  /// Whether any process says so; all ranks call it.
  bool any(bool own) const;
  /// What the first process says; all ranks call it.
  std::string of_first(const std::string& own) const;
  std::map<std::string, HostTensor> of_first(const std::map<std::string, HostTensor>& own) const;
  /// What the first of the processes says that say anything; all ranks call it.
  std::string first_said(const std::string& own) const;

 private:
  std::shared_ptr<Ranks> ranks_;
};

}  // namespace lathe
