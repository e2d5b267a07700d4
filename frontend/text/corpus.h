#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/vocabulary.h"
#include "ir/support/tensors/host_tensor.h"

namespace lathe::text {

/// Token ids of a text, its first nine tenths to train on, the rest to validate.
struct Corpus {
  Vocabulary vocabulary;
  std::vector<std::int64_t> train, validation;
};
/// Ids of a text, of which the last tenth is to validate.
struct SplitIds {
  std::vector<std::int64_t> train, validation;
};
/// Throws UserError [text_short] where the validation part has fewer than `length` + 1 ids; `unit` is what they are.
SplitIds split_ids(const std::vector<std::int64_t>& ids, std::int64_t length, std::string_view unit = "characters");
/// Throws UserError [text_short] where the validation part has fewer than `length` + 1 characters.
Corpus make_corpus(std::string_view text, std::int64_t length);
/// The same over a vocabulary that is there already, as when training resumes.
Corpus make_corpus(std::string_view text, std::int64_t length, const Vocabulary& vocabulary);

/// The most bytes of text that are read.
inline constexpr std::size_t most_text = std::size_t{1} << 30;

/// The whole file, or what a pipe or device gives. Throws UserError [file_read], and [text_size] above most_text.
std::string read_text(const std::filesystem::path& file);
/// All files below `folder` whose names end in one of `endings` (".cpp"), sorted by path, one after the other, each
/// headed by its path. Hidden folders are left out. Throws UserError [file_read], and [text_size] above most_text.
std::string read_folder(const std::filesystem::path& folder, const std::vector<std::string>& endings);

/// Windows of text. Batch `step` depends on (seed, step) alone, so training resumes anywhere.
class BatchSampler {
 public:
  /// `ids` must outlive it. Throws UserError [text_short] for fewer than length + 1 ids.
  BatchSampler(const std::vector<std::int64_t>& ids, std::int64_t batch, std::int64_t length, std::uint64_t seed);

  /// i64 [batch, length + 1]: each row a window at a random offset.
  HostTensor random(std::int64_t step) const;
  /// i64 [batch, length + 1]: rows batch*index .. of all windows that follow each other; counts modulo windows().
  HostTensor sequential(std::int64_t index) const;
  /// The same into a tensor that is filled again; one of another dtype or shape becomes a new one.
  void random(std::int64_t step, HostTensor& rows) const;
  void sequential(std::int64_t index, HostTensor& rows) const;
  /// How many windows of `length` predictions the text holds.
  std::int64_t windows() const;

 private:
  void make_room(HostTensor& rows) const;
  void copy_window(HostTensor& to, std::int64_t row, std::int64_t start) const;

  const std::vector<std::int64_t>& ids_;
  std::int64_t batch_, length_;
  std::uint64_t seed_;
};

}  // namespace lathe::text
