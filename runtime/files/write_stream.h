#pragma once

#include <cstdio>
#include <string_view>

namespace lathe {

/// Whether all of the text has come to the file behind a stream. That of a line-buffered one is asked for by ferror:
/// glibc's fwrite, which flushes it then, gives success all the same, and fflush finds nothing left to do.
inline bool write_stream(std::FILE* stream, std::string_view text) {
  const bool is_taken = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  return std::fflush(stream) == 0 && is_taken && std::ferror(stream) == 0;
}

}  // namespace lathe
