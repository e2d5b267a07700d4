#include "models/text/corpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/numbers/philox.h"

namespace lathe::text {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void too_short(std::size_t have, std::int64_t need, std::string_view unit = "characters") {
  throw UserError(fmt::format("the text has {} {} here, {} are needed", have, unit, need), "text_short",
                  "give a longer text or a shorter sequence length");
}

[[noreturn]] void too_long(const fs::path& from) {
  throw UserError(fmt::format("{} has more than {} bytes of text", from.string(), most_text), "text_size",
                  "give less; is it a device, or a pipe without an end?");
}

}  // namespace

SplitIds split_ids(const std::vector<std::int64_t>& ids, std::int64_t length, std::string_view unit) {
  const auto cut = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() - ids.size() / 10);
  SplitIds split{{ids.begin(), cut}, {cut, ids.end()}};
  if (std::cmp_less_equal(split.validation.size(), length)) too_short(split.validation.size(), length + 1, unit);
  return split;
}

Corpus make_corpus(std::string_view text, std::int64_t length, const Vocabulary& vocabulary) {
  SplitIds split = split_ids(vocabulary.encode(text), length);
  return {vocabulary, std::move(split.train), std::move(split.validation)};
}

Corpus make_corpus(std::string_view text, std::int64_t length) {
  return make_corpus(text, length, Vocabulary::of(text));
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text, block(std::size_t{1} << 16, '\0');
  do {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_text) too_long(file);
  } while (in);
  if (!in.is_open() || in.bad())
    throw UserError(fmt::format("cannot read {}", file.string()), "file_read", "give a text file that can be read");
  return text;
}

std::string read_folder(const fs::path& folder, const std::vector<std::string>& endings) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
  if (error)
    throw UserError(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()), "file_read",
                    "give a folder of text files");
  for (; it != end; it.increment(error)) {
    if (error) break;
    const std::string name = it->path().filename().string();
    if (it->is_directory(error)) {
      if (name.starts_with('.')) it.disable_recursion_pending();
    } else if (it->is_regular_file(error) &&
               std::any_of(endings.begin(), endings.end(), [&](const auto& e) { return name.ends_with(e); })) {
      files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  std::string text;
  for (const fs::path& file : files) {
    text += fmt::format("// {}\n{}\n", file.lexically_relative(folder).generic_string(), read_text(file));
    if (text.size() > most_text) too_long(folder);
  }
  return text;
}

std::string read_training_text(const fs::path& file, const fs::path& sources) {
  if (!file.empty()) return read_text(file);
  return read_folder(sources, {".h", ".cpp", ".md", ".txt", ".js", ".css", ".sh", ".cmake"});
}

BatchSampler::BatchSampler(const std::vector<std::int64_t>& ids, std::int64_t batch, std::int64_t length,
                           std::uint64_t seed)
    : ids_(ids), batch_(batch), length_(length), seed_(seed) {
  if (batch < 1 || length < 1)
    throw UserError(fmt::format("a batch of {} rows of {} tokens", batch, length), "text_batch",
                    "give a batch and a length of 1 or more");
  if (std::cmp_less_equal(ids.size(), length)) too_short(ids.size(), length + 1);
}

void BatchSampler::make_room(HostTensor& rows) const {
  if (rows.dtype() != i64 || rows.rank() != 2 || rows.shape()[0] != batch_ || rows.shape()[1] != length_ + 1)
    rows = HostTensor(i64, {batch_, length_ + 1});
}

void BatchSampler::copy_window(HostTensor& to, std::int64_t row, std::int64_t start) const {
  std::copy_n(ids_.begin() + start, length_ + 1, to.as<std::int64_t>().begin() + row * (length_ + 1));
}

HostTensor BatchSampler::random(std::int64_t step) const {
  HostTensor rows;
  random(step, rows);
  return rows;
}

void BatchSampler::random(std::int64_t step, HostTensor& rows) const {
  make_room(rows);
  const auto offsets = static_cast<std::uint64_t>(static_cast<std::int64_t>(ids_.size()) - length_);
  const auto s = static_cast<std::uint64_t>(step);
  for (std::int64_t row = 0; row < batch_; ++row) {
    const PhiloxWords w = philox({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(s),
                                  static_cast<std::uint32_t>(s >> 32), 0x62617463u},
                                 {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    const std::uint64_t word = (static_cast<std::uint64_t>(w[0]) << 32) | w[1];
    copy_window(rows, row, static_cast<std::int64_t>(word % offsets));
  }
}

std::int64_t BatchSampler::windows() const { return (static_cast<std::int64_t>(ids_.size()) - 1) / length_; }

HostTensor BatchSampler::sequential(std::int64_t index) const {
  HostTensor rows;
  sequential(index, rows);
  return rows;
}

void BatchSampler::sequential(std::int64_t index, HostTensor& rows) const {
  make_room(rows);
  for (std::int64_t row = 0; row < batch_; ++row)
    copy_window(rows, row, (index * batch_ + row) % windows() * length_);
}

}  // namespace lathe::text
