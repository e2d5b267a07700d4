#include "models/finetune/run/metrics_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe {

namespace {

/// Returns whether a run that resumes after `step` keeps a line.
bool is_kept(std::string_view line, std::int64_t step, bool done) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return false;
  const auto of = json["step"].get<std::int64_t>();
  return of < step || (of == step && !(done && json.contains("validation_loss")));
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, std::int64_t step, bool done) : path_(std::move(path)) {
  std::string kept;
  if (step > 0 && path_exists(path_)) {
    const std::string text = read_file(path_, std::uint64_t{1} << 28);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      if (is_kept(line, step, done)) kept.append(line).push_back('\n');
      at = end + 1;
    }
  }
  AtomicFile file(path_);
  file.write(kept);
  file.commit();
}

void MetricsFile::write(std::int64_t step, const Fields& fields) {
  nlohmann::ordered_json json{{"step", step}};
  for (const auto& [name, value] : fields) std::visit([&](const auto& is) { json[name] = is; }, value);
  const std::string line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open() || !write_all(file.get(), std::as_bytes(std::span(line))))
    throw UserError(fmt::format("cannot write to {}", path_.string()), "file_write", "is there room on the disk?");
}

}  // namespace lathe
