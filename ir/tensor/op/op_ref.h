#pragma once

#include <utility>

namespace lathe::ir {

struct Op;

/// A node's reference to its op: a pointer to the record, compared as a pointer. Records created at run time
/// (ir/tensor/op/owned_op.h) are reference-counted; those of Lathe are static.
class OpRef {
 public:
  OpRef() = default;
  OpRef(const Op* op);                 // NOLINT(google-explicit-constructor)
  OpRef(const Op& op) : OpRef(&op) {}  // NOLINT(google-explicit-constructor)
  OpRef(const OpRef& other) : op_(other.op_), counted_(other.counted_) {
    if (counted_) hold();
  }
  OpRef(OpRef&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)), counted_(std::exchange(other.counted_, false)) {}
  OpRef& operator=(OpRef other) noexcept {
    std::swap(op_, other.op_);
    std::swap(counted_, other.counted_);
    return *this;
  }
  ~OpRef() {
    if (counted_) release();
  }

  operator const Op*() const { return op_; }  // NOLINT(google-explicit-constructor)
  const Op* operator->() const { return op_; }
  const Op& operator*() const { return *op_; }

 private:
  void hold() const;
  void release() const;

  const Op* op_ = nullptr;
  bool counted_ = false;  // an OwnedOp
};

}  // namespace lathe::ir
