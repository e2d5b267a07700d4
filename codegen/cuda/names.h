#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

/// Names and constants in CUDA C++ text.
namespace lathe::cuda {

/// Returns "f32" or "vec<f32, 4>", as lathe.cuh defines them.
std::string type_name(kernel::Type type);
/// Returns the name of loop index `number`: "i0"; "j8", because "i8" is a type.
std::string index_name(int number);
/// Returns a constant: "0.5f", "3LL", "true", "bf16{0x3f80}", "broadcast<4>(0.5f)". `in_int32`: an i64 emitted as
/// i32.
std::string constant_text(const kernel::Instruction& constant, bool in_int32 = false);

/// Replaces everything but letters, digits and '_' by '_'. The result is not empty and does not start with a digit.
std::string identifier(std::string_view text);
/// Returns the text as one line of a comment: no line breaks, and no backslash that would continue it.
std::string comment_text(std::string_view text);

/// Generates distinct identifiers that are not C++ keywords or names of lathe.cuh or the emitter.
class UniqueNames {
 public:
  std::string take(std::string_view wanted);

 private:
  std::set<std::string> taken_;
};

}  // namespace lathe::cuda
