#include "tools/files.h"

#include <fmt/core.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "ir/support/error.h"
#include "ir/tensor/parser.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/file_io.h"

namespace lathe::tools {

std::string read_text(const std::string& path) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 28;
  if (path != "-") return read_file(path, limit);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (std::cin.bad()) throw UserError("standard input cannot be read", "file_read");
  return text;
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      throw UserError("standard output cannot be written", "file_write", "is the pipe closed, or the disk full?");
    return;
  }
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

ir::Graph load_graph(const std::string& path) {
  return ir::parse_graph(read_text(path), path == "-" ? "<stdin>" : std::string_view(path));
}

}  // namespace lathe::tools
