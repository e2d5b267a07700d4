#pragma once

/// The optimizers of this library. Each is a struct of options that converts to an Optimizer.
#include "frontend/train/optimizers/adafactor.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/eight_bit/adamw_8bit.h"
#include "frontend/train/optimizers/lion.h"
#include "frontend/train/optimizers/muon.h"
#include "frontend/train/optimizers/schedule_free.h"
#include "frontend/train/optimizers/sgd.h"
#include "frontend/train/optimizers/soap.h"
