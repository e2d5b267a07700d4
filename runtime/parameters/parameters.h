#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// The values of parameters and states by name. They are separate from executables: executables for training,
/// evaluation, prefill and decoding share one store, so that weights are in memory once, and a store can be used with
/// several graphs. Values are on the host, on a device, or both (location()); reading a value copies the current one
/// to the host.
///
///   Parameters weights = Parameters::load("model.safetensors");
///   Executable step = compile(training, {.parameters = weights});
///   Executable evaluate = compile(forward, {.parameters = weights});
///
/// A copy refers to the same store. Calls from several threads and runs on the same store are serialized, except that
/// runs without updates run concurrently.
class Parameters {
 public:
  /// Creates an empty store.
  Parameters();
  /// Creates a store with these values.
  explicit Parameters(Tensors values);
  /// Returns the tensors of a .safetensors file, mapped in place: data is read at first use, and writes by runs stay
  /// in memory. The file must not be truncated while the store exists. Throws UserErrors of SafetensorsFile.
  static Parameters load(const std::filesystem::path& file);
  /// Writes the values that `filter` selects by name, or all of them, to a .safetensors file, atomically. A store
  /// also has the states of optimizers; nn::parameters_of(model) selects the parameters of a model alone. Throws
  /// UserErrors of write_safetensors, and [argument_unknown] if the filter selects nothing.
  void save(const std::filesystem::path& file, const std::function<bool(std::string_view)>& filter = {}) const;

  /// Returns another store whose values share the memory of this one's. It is for executables that use the same
  /// weights but have their own states. States that an executable on this store updates are not lent; they must be
  /// set in the other store. Values stay valid as long as one of the stores has them; memory lent to this store must
  /// outlive both. set() in one store does not affect the other, but in-place writes by runs do, so a run that
  /// updates a value must not run concurrently with one that reads it through another store.
  Parameters borrowed() const;

  /// Copies values in mapped files or borrowed memory to memory owned by the store, in huge pages if the system has
  /// them. This is faster for runs that read all values repeatedly, such as generation. Closes the files.
  void copy_to_memory();

  bool contains(std::string_view name) const;
  /// Returns the names, sorted.
  std::vector<std::string> names() const;
  /// Returns the current value in place, without a copy. The reference is valid until the value is set or erased, and
  /// runs update it: while other threads run executables on the store, read a snapshot() instead. Throws UserError
  /// [argument_unknown], and [state_unset] for a state of an executable that was never set.
  const HostTensor& get(std::string_view name) const;
  /// Returns a tensor over the memory of the current value, for another store: runs of either one write it for both.
  /// It lives as long as one of them; memory lent to this store must outlive both. Same errors as get().
  HostTensor share(std::string_view name) const;
  /// Returns a copy of the current value, which later runs do not change. No run changes it during the copy. Same
  /// errors as get().
  HostTensor snapshot(std::string_view name) const;
  /// Sets one or several values. Once executables use the store, names that neither they nor the store have are
  /// rejected [argument_unknown], and so are values whose types differ from theirs [argument_dtype],
  /// [argument_shape].
  void set(std::string_view name, HostTensor value);
  void set(Tensors values);
  /// Sets a value to a tensor of a .safetensors file, mapped in place like load() does.
  void map(std::string_view name, const SafetensorsFile& file, std::string_view tensor);
  /// Removes a value. Throws UserError [argument_unknown].
  void erase(std::string_view name);
  /// Returns copies of all values.
  Tensors values() const;
  /// Returns the total size of all values in host memory and in mapped files.
  std::int64_t bytes() const;

  /// Returns the location of a value and of its current copy. Runs move values: runs on a GPU leave updated values
  /// there until get(), values() or save(). Throws UserError [argument_unknown], [state_unset].
  ParameterLocation location(std::string_view name) const;
  /// Values grouped by location, largest total size first.
  struct Share {
    ParameterLocation location;
    std::int64_t values = 0, bytes = 0;
  };
  std::vector<Share> shares() const;

  /// Returns whether both are the same store.
  bool operator==(const Parameters& other) const { return store_ == other.store_; }

  /// Returns the store that executables use.
  const std::shared_ptr<ParameterStore>& store() const { return store_; }

 private:
  std::shared_ptr<ParameterStore> store_;
};

/// Returns text with the number of values of a store, their size, and their locations:
///
///   148 values, 497.8 MiB
///     124 values, 474.7 MiB in model.safetensors, mapped
///     24 values, 23.1 MiB in cuda:0 (memory is older)
std::string to_string(const Parameters& parameters);

}  // namespace lathe
