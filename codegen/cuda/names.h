#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

/// Words of CUDA C++ text.
namespace lathe::cuda {

/// "f32", "vec<f32, 4>", as lathe.cuh defines them.
std::string type_name(kernel::Type type);
/// The index of the loop of this number: "i0"; "j8" where "i8" is a type.
std::string index_name(int number);
/// A number: "0.5f", "3LL", "true", "bf16{0x3f80}", "broadcast<4>(0.5f)". `in_int32`: an i64 that is written as i32.
std::string constant_text(const kernel::Instruction& constant, bool in_int32 = false);

/// Letters, digits and '_' of a text, others as '_'; never empty, never starts with a digit.
std::string identifier(std::string_view text);
/// The text as one line of a comment: no line breaks, no backslash that would continue it.
std::string comment_text(std::string_view text);

/// Hands out identifiers that are distinct, no words of C++ and no names that lathe.cuh or the emitter uses.
class UniqueNames {
 public:
  std::string take(std::string_view wanted);

 private:
  std::set<std::string> taken_;
};

}  // namespace lathe::cuda
