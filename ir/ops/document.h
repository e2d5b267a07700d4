#pragma once

#include <string>

#include "ir/tensor/op/op.h"

/// Generates the op reference from the records.
namespace lathe::ir {

/// Returns the documentation of an op as Markdown: summary, operands, attributes, meaning, gradient, constraints,
/// example.
std::string document_op(const Op& op);

/// Returns all of docs/ops.md: the ops by kind of meaning, then every constraint with the ops that can raise it.
std::string document_ops();

}  // namespace lathe::ir
