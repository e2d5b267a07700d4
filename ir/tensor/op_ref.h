#pragma once

#include <memory>

namespace lathe::ir {

struct Op;

/// What a node knows its op by: a pointer to the record, which compares as one. A record that a program made while it
/// ran (ir/tensor/owned_op.h) lives as long as something refers to it; those of Lathe are always there.
class OpRef {
 public:
  OpRef() = default;
  OpRef(const Op* op);                 // NOLINT(google-explicit-constructor)
  OpRef(const Op& op) : OpRef(&op) {}  // NOLINT(google-explicit-constructor)

  operator const Op*() const { return op_; }  // NOLINT(google-explicit-constructor)
  const Op* operator->() const { return op_; }
  const Op& operator*() const { return *op_; }

 private:
  const Op* op_ = nullptr;
  std::shared_ptr<const Op> owner_;  // null for a record of Lathe
};

}  // namespace lathe::ir
