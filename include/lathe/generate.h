#pragma once

/// Text generation: the choice of tokens, and generators with models from Hugging Face directories.
#include "frontend/decode/decoding.h"
#include "models/generation/cached_lm.h"
#include "models/generation/cached_seq2seq.h"
#include "models/generation/generator.h"
