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

/// What is behind Parameters. Whoever reads or writes anything in it holds `mutex`, in shared mode where neither a
/// value nor the place of its newest copy changes.
struct ParameterStore {
  /// What an executable says of a name.
  struct Declaration {
    Program::Slot slot;
    std::string program;
  };

  std::shared_mutex mutex;
  std::map<std::string, StoredTensor, std::less<>> values;  ///< addresses stay until a name is erased
  std::map<std::string, Declaration, std::less<>> declared;
  std::vector<const Program*> programs;  ///< that work on it now
  std::uint64_t version = 1;  ///< changes when a value is set or erased, which may change its shape and address

  /// Lets a program work on the store: its states are declared. UserError [parameters_conflict] where another program
  /// or a value that is there has another type; [state_shared] where another program that works on the store updates
  /// one of the states that this one updates, unless `shares_states`. Parameters and the random state are shared.
  void attach(const Program& program, bool shares_states);
  /// The program does not work on the store any more; its declarations stay.
  void detach(const Program& program);
  /// Whether a program that works on the store updates the state, which is neither a parameter nor the random state.
  bool is_updated_state(std::string_view name) const;
  /// The values of a program's states, in the order of its slots; null for one without a value.
  std::vector<StoredTensor*> resolve(const Program& program);
  /// Throws UserError [state_unset].
  [[noreturn]] void throw_unset(const Program& program, const Program::Slot& slot) const;
  /// Sets a value; `mutex` is held. See Parameters::set. `file`: whose mapped pages it lies in.
  void set(std::string_view name, HostTensor value, const std::filesystem::path& file = {});
  /// Throws [state_unset] or [argument_unknown] for a name without a value.
  [[noreturn]] void missing(std::string_view name) const;
};

}  // namespace lathe
