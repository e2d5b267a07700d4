#pragma once

#include <compare>
#include <string>

#include "passes/program/program.h"

namespace lathe {

/// The role of a launch. Launches that do the same work in different layers have the same role.
struct Role {
  std::string what;  ///< "matrix product", "row reduction", "element-wise", "pack left operand", ...
  std::string
      where;        ///< module or updated parameter, layer numbers as *: "h.*.mlp.c_fc", "update of h.*.ln_1.weight"
  std::string ops;  ///< kinds of ops, in order, at most four: "contract, add, tanh, ..."
  std::string source;  ///< "gpt.cpp:83", "gradient of gpt.cpp:83"
  auto operator<=>(const Role&) const = default;
};

Role role_of(const Program& program, const Launch& launch);

/// Replaces layer numbers, which are numbers between dots, by *: "h.11.mlp.c_fc" -> "h.*.mlp.c_fc".
std::string without_layer_numbers(std::string_view path);

}  // namespace lathe
