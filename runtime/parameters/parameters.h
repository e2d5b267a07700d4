#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensors.h"
#include "runtime/parameters/parameter_location.h"

namespace lathe {

struct ParameterStore;
class SafetensorsFile;

/// The values of parameters and states, by name. They live apart from the executables that work on them: executables
/// for training, evaluation, prefill and decoding share one store, so weights are held once, and a store outlives a
/// change of graph. Values are on the host, on a device, or on both, which location() tells; reading one brings the
/// newest to the host.
///
///   Parameters weights = Parameters::load("model.safetensors");
///   Executable step = compile(training, {.parameters = weights});
///   Executable evaluate = compile(forward, {.parameters = weights});
///
/// A copy is the same store. Calls from several threads, and runs that work on one store, take turns; runs that
/// update nothing go side by side.
class Parameters {
 public:
  /// An empty store.
  Parameters();
  /// Takes values by name.
  explicit Parameters(Tensors values);
  /// The tensors of a .safetensors file, where they lie in the mapped file: nothing is read before it is used, and
  /// what runs write stays in memory. The file must not be shortened while the store lives. UserErrors of
  /// SafetensorsFile.
  static Parameters load(const std::filesystem::path& file);
  /// Writes every value to a .safetensors file, which appears whole or not at all. UserErrors of write_safetensors.
  void save(const std::filesystem::path& file) const;

  /// Another store whose values are in the memory of this one's: for executables that work on the same weights as
  /// others and have states of their own. States that an executable on this store updates are not lent: the other
  /// store has none of them until they are set there. Values live as long as one of both has them; memory that was
  /// lent to this store must stay for both. What is set in one is not seen in the other; what runs write in place is,
  /// so a run that updates a value must not go beside one that reads it by another store.
  Parameters borrowed() const;

  /// Copies values that lie in mapped files, or in other memory that is not their own, to memory of their own, in
  /// large pages where the system has them: what reads all of them again and again, as generation does, is faster
  /// there. The files are let go.
  void copy_to_memory();

  bool contains(std::string_view name) const;
  /// Sorted.
  std::vector<std::string> names() const;
  /// A value as it is now. The reference is good until the value is set or erased; a run that updates it writes
  /// there. UserError [argument_unknown], [state_unset] for one that executables work on and that was never set.
  const HostTensor& get(std::string_view name) const;
  /// Sets one value or several. Once executables work on the store, names that neither they nor the store have are
  /// refused [argument_unknown], and so are values of other types than theirs [argument_dtype], [argument_shape].
  void set(std::string_view name, HostTensor value);
  void set(Tensors values);
  /// Sets one to a tensor of a .safetensors file, where it lies in the mapped file, as load() does.
  void map(std::string_view name, const SafetensorsFile& file, std::string_view tensor);
  /// Takes a value out. UserError [argument_unknown].
  void erase(std::string_view name);
  /// Copies of all values.
  Tensors values() const;
  /// What all values take in host memory or in mapped files.
  std::int64_t bytes() const;

  /// Where a value lies, and where its newest copy. Runs move values: those on a GPU leave what they update there
  /// until get(), values() or save() asks for it. UserError [argument_unknown], [state_unset].
  ParameterLocation location(std::string_view name) const;
  /// The values by where they lie, most bytes first.
  struct Share {
    ParameterLocation location;
    std::int64_t values = 0, bytes = 0;
  };
  std::vector<Share> shares() const;

  /// Whether both are the same store.
  bool operator==(const Parameters& other) const { return store_ == other.store_; }

  /// What executables work on.
  const std::shared_ptr<ParameterStore>& store() const { return store_; }

 private:
  std::shared_ptr<ParameterStore> store_;
};

/// Some lines for people: how many values a store has, what they take, and where they lie:
///
///   148 values, 497.8 MiB
///     124 values, 474.7 MiB in model.safetensors, mapped
///     24 values, 23.1 MiB in cuda:0 (memory is older)
std::string to_string(const Parameters& parameters);

}  // namespace lathe
