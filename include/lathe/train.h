#pragma once

/// Training: optimizers, training steps, and a loop over batches with checkpoints.
#include "frontend/train/step.h"
#include "runtime/train/progress.h"
#include "runtime/train/trainer.h"
