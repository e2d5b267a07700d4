#pragma once

namespace lathe {

/// The rough cost of moving an element through memory, in multiply-adds.
inline constexpr double memory_work = 32;

}  // namespace lathe
