#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "passes/program/program.h"
#include "runtime/parameters/stored_tensor.h"

namespace lathe {

/// The state shared by copies of Parameters. Accesses require `mutex`. Shared mode is sufficient if neither a value
/// nor the location of its current copy changes.
struct ParameterStore {
  /// Declaration of a state by an executable.
  struct Declaration {
    Program::Slot slot;
    std::string program;
  };

  std::shared_mutex mutex;
  std::map<std::string, StoredTensor, std::less<>> values;  ///< addresses are stable until a name is erased
  std::map<std::string, Declaration, std::less<>> declared;
  std::vector<const Program*> programs;  ///< programs attached now
  std::uint64_t version = 1;  ///< incremented when a value is set or erased, because its shape and address may change

  /// Attaches a program and declares its states. Throws UserError [parameters_conflict] if another program or an
  /// existing value has a different type. Throws [state_shared] if another attached program updates a state that this
  /// one updates, unless `shares_states`. Parameters and the random state may be shared.
  void attach(const Program& program, bool shares_states);
  /// Detaches the program. Its declarations are kept.
  void detach(const Program& program);
  /// Returns whether an attached program updates the state. False for parameters and the random state.
  bool is_updated_state(std::string_view name) const;
  /// Returns the values of a program's states in the order of its slots; null for missing values.
  std::vector<StoredTensor*> resolve(const Program& program);
  /// Throws UserError [state_unset].
  [[noreturn]] void throw_unset(const Program& program, const Program::Slot& slot) const;
  /// Sets a value; requires `mutex`. See Parameters::set. `file` is the file whose mapped pages contain the value.
  void set(std::string_view name, HostTensor value, const std::filesystem::path& file = {});
  /// Returns the value in host memory; requires `mutex`. Throws as missing().
  const HostTensor& value_on_host(std::string_view name);
  /// Throws [state_unset] or [argument_unknown] for a name without a value.
  [[noreturn]] void missing(std::string_view name) const;
};

}  // namespace lathe
