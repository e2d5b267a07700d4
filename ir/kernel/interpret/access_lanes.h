#pragma once

#include <cstdint>

#include "ir/kernel/interpret/decoded_kernel.h"
#include "ir/kernel/interpret/interpreter_memory.h"

/// Loads and stores of all lanes of a statement; `lanes` is Thread::lanes.
namespace lathe::kernel {

/// Calls access(i, index) for each lane that accesses memory, and skip(i) for the others.
template <class Access, class Skip>
void each_access(const DecodedStatement& s, const Scalar* lanes, const Access& access, const Skip& skip) {
  const Scalar* const index = lanes + s.a;
  const std::int64_t stride = s.pattern == AccessPattern::strided ? lanes[s.b].integer : 1;
  for (int i = 0; i < s.lanes; ++i) {
    if (s.masked && lanes[s.c + static_cast<std::uint32_t>(i)].integer == 0) {
      skip(i);
      continue;
    }
    access(i, s.pattern == AccessPattern::by_lane ? index[i].integer : index->integer + i * stride);
  }
}

inline void load_lanes(const DecodedStatement& s, const Target& from, const Actor& actor, Scalar* lanes) {
  Scalar* const out = lanes + s.out;
  each_access(s, lanes, [&](int i, std::int64_t at) { out[i] = from.load(at, actor); }, [&](int i) { out[i] = {}; });
  from.check_alignment(s.alignment, lanes[s.a].integer);
}

inline void store_lanes(const DecodedStatement& s, const Target& to, const Actor& actor, const Scalar* lanes) {
  const Scalar* const value = lanes + s.out;
  each_access(s, lanes, [&](int i, std::int64_t at) { to.store(at, value[i], actor); }, [](int) {});
  to.check_alignment(s.alignment, lanes[s.a].integer);
}

}  // namespace lathe::kernel
