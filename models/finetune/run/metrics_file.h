#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lathe {

/// metrics.jsonl: one JSON object per line for each step, evaluation and sample. Its first field is "step".
class MetricsFile {
 public:
  using Fields = std::vector<std::pair<std::string, std::variant<double, std::string>>>;

  /// Keeps the lines of steps up to `step`, from which the run resumes; none for 0. If `done`, no steps are left and
  /// the run repeats the last validation, so its line is removed. Throws UserError [file_write].
  MetricsFile(std::filesystem::path path, std::int64_t step, bool done = false);
  /// Writes a line. NaN and infinity become null, invalid UTF-8 becomes U+FFFD. Throws UserError [file_write].
  void write(std::int64_t step, const Fields& fields);

 private:
  std::filesystem::path path_;
};

}  // namespace lathe
