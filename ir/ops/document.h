#pragma once

#include <string>

#include "ir/tensor/op/op.h"

/// The reference of the ops, written from their records.
namespace lathe::ir {

/// One op as Markdown: what it computes, operands, attributes, meaning, gradient, constraints, an example.
std::string document_op(const Op& op);

/// All of docs/ops.md: every op by its kind of meaning, then every constraint with the ops that can raise it.
std::string document_ops();

}  // namespace lathe::ir
