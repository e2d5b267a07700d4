#pragma once

#include <initializer_list>
#include <string_view>

#include "frontend/train/schedule.h"

/// Checks of optimizer options: each returns the fault, or nothing.
namespace lathe::detail {

/// A finite number of 0 or more.
Fault unless_positive(std::string_view name, double value);
/// A number in [0, 1).
Fault unless_share(std::string_view name, double value);
/// A number of at least `least`.
Fault unless_at_least(std::string_view name, double value, double least);
/// Returns the first fault; nothing if there is none.
Fault first_of(std::initializer_list<Fault> faults);
/// Returns the first option of an optimizer of Adam's kind that is out of range, or nothing.
template <class AnyAdam>
Fault adam_fault(const AnyAdam& adam) {
  return first_of({unless_share("beta1", adam.beta1), unless_share("beta2", adam.beta2),
                   unless_positive("eps", adam.eps), unless_positive("weight_decay", adam.weight_decay)});
}

}  // namespace lathe::detail
