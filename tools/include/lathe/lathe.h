#pragma once

/// All that a program needs to build a model, differentiate it, compile it and run it, to keep what it learned, and
/// to work with models and tokenizers as Hugging Face's directories hold them.
#include "frontend/decoding.h"
#include "frontend/dsl.h"
#include "frontend/generation/generator.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/pretrained/pretrained.h"
#include "ir/support/dlpack.h"
#include "ir/tensor/explain.h"
#include "ir/tensor/parser.h"
#include "ir/tensor/printer.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors.h"
#include "runtime/text/template/chat_template.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "runtime/train/trainer.h"
