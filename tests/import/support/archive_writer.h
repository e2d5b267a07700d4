#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

/// Writes zip files, and changed copies of the .pt2 files in tests/import/data/pt2.
namespace lathe::test {

/// How a zip file is written.
struct ZipForm {
  bool is_zip64 = false;       ///< sizes and offsets of 64 bits
  std::string method_of = {};  ///< name of a file that claims to be compressed
  std::uint16_t method = 8;    ///< its method: deflate
  std::string comment = {};    ///< after the directory
};

/// Returns the bytes of a zip file without compression.
std::string zip_bytes(const std::map<std::string, std::string>& files, const ZipForm& form = {});

/// A program of tests/import/data/pt2 whose files can be changed.
class ProgramFile {
 public:
  explicit ProgramFile(const std::string& program);

  /// Replaces the first occurrence of a text in a file: "models/model.json". The text must be there.
  ProgramFile& replace(const std::string& file, std::string_view from, std::string_view to);
  ProgramFile& set(const std::string& file, std::string bytes);
  ProgramFile& remove(const std::string& file);
  const std::string& at(const std::string& file) const { return files_.at("model/" + file); }

  std::string bytes(const ZipForm& form = {}) const { return zip_bytes(files_, form); }
  /// Writes model.pt2 to a new folder for tests. Returns its path.
  std::filesystem::path write(const ZipForm& form = {}) const;

 private:
  std::map<std::string, std::string> files_;
};

}  // namespace lathe::test
