#pragma once

#include <string>
#include <vector>

#include "runtime/library/library_plan.h"

namespace lathe {

/// The part of a library's header that depends on the kind of machine, as text in C.
class HeaderMachine {
 public:
  virtual ~HeaderMachine() = default;

  /// Returns a paragraph of the first comment: rules about memory and threads.
  virtual std::string rules() const = 0;
  /// Returns types that libraries share, such as lathe_workers.
  virtual std::string shared_types() const = 0;
  /// Returns the members of the library's struct after `key`.
  virtual std::string instance_members() const = 0;
  /// Returns the members of a call after those of the workspace.
  virtual std::string call_members() const = 0;
  /// Returns the arguments of init after the library, as declared and as in the first comment: ", &driver".
  virtual std::string init_parameters() const { return ""; }
  virtual std::string init_arguments() const { return ""; }
  /// Returns the start of the comment of init: "Chooses the code for this CPU".
  virtual std::string init_comment() const = 0;
  /// Returns the declaration of the function for the size of workspaces, with a comment.
  virtual std::string workspace_function() const = 0;
  /// Returns declarations of the functions that run a graph, with comments. `name` starts their names.
  virtual std::string run_functions(const std::string& name, const std::string& graph) const = 0;
  /// Returns declarations of functions that only libraries of this kind have. `dims` is a parameter of functions that
  /// need the dims of states, or empty.
  virtual std::string other_functions(const std::string& /*dims*/) const { return ""; }
  /// Returns the bytes that the start of each state is a multiple of, in a block of memory for calls, if such a block
  /// differs from a file; otherwise 0.
  virtual int block_alignment() const { return 0; }
};

/// Returns the targets of levels by number, for a comment: "0 = x86-64-v3, 1 = x86-64-v4".
std::string c_levels(const std::vector<std::string>& targets);

/// Returns the header of a library, in C99 and C++. It includes no other headers than those of C for sizes and
/// integers.
std::string c_header(const LibraryPlan& plan, const HeaderMachine& machine);

}  // namespace lathe
