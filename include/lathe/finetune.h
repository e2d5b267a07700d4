#pragma once

/// Training of language models on texts, and fine-tuning of pretrained models and adapters on examples.
#include "models/finetune/fine_tuning.h"
#include "models/finetune/imported/imported_tuning.h"
#include "models/finetune/new_model/text_training.h"
