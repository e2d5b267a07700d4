#pragma once

#include <string>
#include <vector>

#include "ir/options/init.h"
#include "passes/program/program.h"
#include "runtime/library/c_names.h"
#include "runtime/library/library_options.h"

namespace lathe {

/// A tensor of the C interface.
struct LibrarySlot {
  std::string name, c_name;
  DType dtype = f32;
  Shape shape;
  bool is_parameter = false, is_written = false;
  std::int64_t alignment = 1;  ///< in bytes, if more than that of an element
};

/// A dim of the C interface.
struct LibraryDimension {
  std::string name, c_name;
  std::int64_t most = 0;
};

/// The functions of one graph.
struct LibraryFunction {
  std::string name;  ///< "prompt"; empty for the only graph
  std::vector<LibrarySlot> inputs = {}, outputs = {};
  std::vector<int> states = {};  ///< by state of the programs: a state of the library, or -1 for an embedded one
  std::vector<ir::DimCheck> checks = {};
  std::vector<Program> programs = {};  ///< by target

  /// Returns the part of symbols after the prefix: "_prompt".
  std::string suffix() const { return name.empty() ? "" : "_" + name; }
};

/// A library before code generation, independent of the backend.
struct LibraryPlan {
  std::string prefix;
  std::vector<std::string> targets = {};
  std::vector<LibraryDimension> dims = {};
  std::vector<LibrarySlot> states = {};
  std::vector<Init> initials = {};  ///< by state
  std::vector<LibraryFunction> functions = {};
  Tensors embedded = {};
  std::string file_header = {};  ///< the start of a .safetensors file with the states of known sizes
  std::string init = {};         ///< symbol of the function that initialises the library
  std::string description = {};  ///< JSON
  int threads = 1;
  std::vector<std::filesystem::path> cuda_folders = {};  ///< LibraryOptions::cuda_folders
  ObjectStore* cache = nullptr;                          ///< LibraryOptions::cache

  /// Returns the bytes of the states of known sizes, which come first in a block.
  std::int64_t file_bytes() const;
  /// Returns the states in the order of a block: those of known sizes as in a .safetensors file, then the others.
  std::vector<int> block_order() const;
};

/// Returns a slot of a program as one of the C interface.
LibrarySlot library_slot(const Program::Slot& slot, CNames& names);

/// Sets the inputs and outputs of a function to those of its programs.
void set_slots(LibraryFunction& function);

/// Returns a library of one compiled program, without initial values, to print its code. `most` binds all dims.
LibraryPlan plan_of(const Program& program, const std::string& target, const DimBindings& most);

}  // namespace lathe
