#pragma once

/// Models: architectures to train, models from Hugging Face directories, graphs from ONNX and .pt2 files, and ONNX
/// files from graphs.
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "models/export/export.h"
#include "models/import/import.h"
#include "models/import/loss/attached_loss.h"
#include "models/pretrained/encoders/embedder.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/pretrained.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
