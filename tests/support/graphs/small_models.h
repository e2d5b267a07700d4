#pragma once

#include "frontend/models/loss_graph.h"

/// Small models with all features of the large ones, for tests of whole training steps.
namespace lathe::test {

inline models::GptConfig small_gpt(DType dtype = f32, int layers = 2) {
  return {.vocab = Dim("vocab", 31),
          .context = Dim("context", 64),
          .d_model = Dim("d_model", 48),
          .h = Dim("h", 3),
          .layers = layers,
          .dropout = 0.1,
          .dtype = dtype};
}

inline models::LlamaConfig small_llama(DType dtype = f32, int layers = 2) {
  return {.vocab = Dim("vocab", 31),
          .d_model = Dim("d_model", 48),
          .d_ff = Dim("d_ff", 80),
          .h = Dim("h", 4),
          .kv_heads = Dim("kv_heads", 2),
          .head_dim = Dim("head_dim", 12),
          .layers = layers,
          .dtype = dtype};
}

inline models::EncoderDecoderConfig small_encoder_decoder(DType dtype = f32) {
  return {.src_vocab = Dim("src_vocab", 31),
          .tgt_vocab = Dim("tgt_vocab", 31),
          .d_model = Dim("d_model", 24),
          .d_ff = Dim("d_ff", 40),
          .h = Dim("h", 2),
          .layers = 2,
          .dropout = 0.1,
          .label_smoothing = 0.1,
          .dtype = dtype};
}

}  // namespace lathe::test
