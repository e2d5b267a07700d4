#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/dim.h"

namespace lathe::pt2 {

/// Returns the dim of a symbol; nothing for an unknown one.
using SymbolDim = std::function<std::optional<Dim>(std::string_view symbol)>;

/// Parses an expression as sympy's srepr() writes it: "Add(Mul(Integer(2), Symbol('s77', integer=True)),
/// Integer(1))". Returns nothing if it is no polynomial, such as a FloorDiv with a rest, or has an unknown symbol.
std::optional<Dim> parse_size(std::string_view text, const SymbolDim& dim_of);

/// Returns the name of a symbol if the expression is one: "s77".
std::optional<std::string> symbol_of(std::string_view text);

}  // namespace lathe::pt2
