#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "passes/lowering/program/program.h"
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
  std::uint64_t version = 1;  ///< changes when a value is set or erased, which may change its shape and address

  /// Lets a program work on the store: its states are declared. UserError [parameters_conflict] where another program
  /// or a value that is there has another type.
  void attach(const Program& program);
  /// The values of a program's states, in the order of its slots. UserError [state_unset].
  std::vector<StoredTensor*> resolve(const Program& program);
  /// Sets a value; `mutex` is held. See Parameters::set. `file`: whose mapped pages it lies in.
  void set(std::string_view name, HostTensor value, const std::filesystem::path& file = {});
  /// Throws [state_unset] or [argument_unknown] for a name without a value.
  [[noreturn]] void missing(std::string_view name) const;
};

}  // namespace lathe
