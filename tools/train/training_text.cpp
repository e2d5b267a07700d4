#include "tools/train/training_text.h"

#include "models/text/corpus.h"

namespace lathe::tools {

std::string training_text(const std::filesystem::path& file, const std::filesystem::path& sources) {
  if (!file.empty()) return text::read_text(file);
  return text::read_folder(sources, {".h", ".cpp", ".md", ".txt", ".js", ".css", ".sh", ".cmake"});
}

}  // namespace lathe::tools
