#pragma once

/// Compilation and execution of a graph, its text form, and explanations of it.
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/op/op_set.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/compile.h"
