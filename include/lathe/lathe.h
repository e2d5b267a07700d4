#pragma once

/// Everything that a program needs to build a model, differentiate, compile and run it, to save trained weights, and
/// to use models and tokenizers from Hugging Face directories. Each header can also be included alone.
#include <lathe/compile.h>
#include <lathe/files.h>
#include <lathe/finetune.h>
#include <lathe/generate.h>
#include <lathe/grad.h>
#include <lathe/library.h>
#include <lathe/mesh.h>
#include <lathe/models.h>
#include <lathe/nn.h>
#include <lathe/ops.h>
#include <lathe/parameters.h>
#include <lathe/tensor.h>
#include <lathe/text.h>
#include <lathe/train.h>
