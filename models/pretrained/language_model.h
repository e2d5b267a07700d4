#pragma once

#include "models/pretrained/families.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"

namespace lathe::pretrained {

/// Loads the language model of a directory, decoder-only or encoder-decoder as config.json says, with its adapter.
/// Returns the result of `use`, which is called with an AdaptedModel or an Adapted<PretrainedSeq2SeqLm>. Throws
/// UserErrors of load_adapted().
template <class Use>
auto with_language_model(const AdaptedFolders& folders, const LoadOptions& options, const Use& use) {
  return kind_of(read_config(folders.model).config) == ModelKind::seq2seq
             ? use(load_adapted<Seq2SeqLm>(folders, options))
             : use(load_adapted<CausalLm>(folders, options));
}

}  // namespace lathe::pretrained
