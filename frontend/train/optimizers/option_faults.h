#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

/// Checks of optimizer options: each returns the fault, or nothing.
namespace lathe::detail {

using Fault = std::optional<std::string>;

/// A finite number of 0 or more.
Fault unless_positive(std::string_view name, double value);
/// A number in [0, 1).
Fault unless_share(std::string_view name, double value);
/// A number of at least `least`.
Fault unless_at_least(std::string_view name, double value, double least);
/// Returns the first fault; nothing if there is none.
Fault first_of(std::initializer_list<Fault> faults);

}  // namespace lathe::detail
