#pragma once

/// Models: architectures to train, models from Hugging Face directories, and graphs from ONNX and .pt2 files.
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "models/import/loss/attached_loss.h"
#include "models/import/import.h"
#include "models/pretrained/encoders/embedder.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/pretrained.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
