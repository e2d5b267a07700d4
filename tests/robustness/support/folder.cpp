#include "tests/robustness/support/folder.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace lathe::robustness {

namespace fs = std::filesystem;

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "lathe-robustness-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no folder for the attack");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  if (!(std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes))
    throw std::runtime_error(path.string() + " cannot be written");
}

}  // namespace lathe::robustness
