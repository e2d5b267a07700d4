#pragma once

#include <cstdio>
#include <string_view>

namespace lathe {

/// Writes text, flushes the stream and returns whether all of it was written. ferror is needed for line-buffered
/// streams: glibc's fwrite flushes them but returns success even if that fails, and then fflush has nothing to do.
inline bool write_stream(std::FILE* stream, std::string_view text) {
  const bool is_taken = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  return std::fflush(stream) == 0 && is_taken && std::ferror(stream) == 0;
}

}  // namespace lathe
