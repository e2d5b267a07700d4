#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "models/text/vocabulary.h"

namespace lathe::text {

/// Token ids of a text: the first nine tenths for training, the rest for validation.
struct Corpus {
  Vocabulary vocabulary;
  std::vector<std::int64_t> train, validation;
};
/// Ids of a text, split like those of a Corpus.
struct SplitIds {
  std::vector<std::int64_t> train, validation;
};
/// Throws UserError [text_short] if the validation part has fewer than `length` + 1 ids; `unit` names them in the
/// error.
SplitIds split_ids(const std::vector<std::int64_t>& ids, std::int64_t length, std::string_view unit = "characters");
/// Throws UserError [text_short] if the validation part has fewer than `length` + 1 characters.
Corpus make_corpus(std::string_view text, std::int64_t length);
/// The same with an existing vocabulary, such as when training resumes.
Corpus make_corpus(std::string_view text, std::int64_t length, const Vocabulary& vocabulary);

/// Maximum size of a text in bytes.
inline constexpr std::size_t most_text = std::size_t{1} << 30;

/// Reads a whole file, pipe or device. Throws UserError [file_read], and [text_size] above most_text.
std::string read_text(const std::filesystem::path& file);
/// Concatenates all files below `folder` whose names end in one of `endings` (such as ".cpp"), sorted by path, each
/// preceded by its path. Skips hidden folders. Throws UserError [file_read], and [text_size] above most_text.
std::string read_folder(const std::filesystem::path& folder, const std::vector<std::string>& endings);
/// Returns a text to train on: the content of `file` or, if it is empty, of all source files below `sources`. Throws
/// UserErrors of read_text() and read_folder().
std::string read_training_text(const std::filesystem::path& file, const std::filesystem::path& sources);

/// Windows of text. Batch `step` depends only on (seed, step), so training can resume at any step.
class BatchSampler {
 public:
  /// `ids` must outlive the sampler. Throws UserError [text_short] for fewer than length + 1 ids.
  BatchSampler(const std::vector<std::int64_t>& ids, std::int64_t batch, std::int64_t length, std::uint64_t seed);

  /// Returns i64 [batch, length + 1]: each row is a window at a random offset.
  HostTensor random(std::int64_t step) const;
  /// Returns i64 [batch, length + 1]: `batch` consecutive windows, from window batch*index on, modulo windows().
  HostTensor sequential(std::int64_t index) const;
  /// The same into an existing tensor, which is replaced if its dtype or shape differs.
  void random(std::int64_t step, HostTensor& rows) const;
  void sequential(std::int64_t index, HostTensor& rows) const;
  /// Number of windows of `length` predictions in the text.
  std::int64_t windows() const;

 private:
  void make_room(HostTensor& rows) const;
  void copy_window(HostTensor& to, std::int64_t row, std::int64_t start) const;

  const std::vector<std::int64_t>& ids_;
  std::int64_t batch_, length_;
  std::uint64_t seed_;
};

}  // namespace lathe::text
