#pragma once

/// Gradients of a graph.
#include "frontend/grad.h"
