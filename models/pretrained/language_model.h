#pragma once

#include <filesystem>

#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"

namespace lathe::pretrained {

/// Loads the language model of a directory, decoder-only or encoder-decoder as config.json says, with its adapter.
/// Returns the result of `use`, which is called with an AdaptedModel or an Adapted<PretrainedSeq2SeqLm>. Throws
/// UserErrors of load(), load_seq2seq_lm(), load_lora().
template <class Use>
auto with_language_model(const AdaptedFolders& folders, const LoadOptions& options, const Use& use) {
  const auto load_by = [&](auto load) {
    return use(load_adapted(folders, [&](const std::filesystem::path& base) { return load(base, options); }));
  };
  return is_seq2seq(read_config(folders.model).config) ? load_by(load_seq2seq_lm) : load_by(load);
}

}  // namespace lathe::pretrained
