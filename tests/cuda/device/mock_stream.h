#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace lathe::test {

/// What the handle of a mock driver's stream points to: where the mock of another library puts its work.
class MockStream {
 public:
  virtual ~MockStream() = default;
  /// Puts work behind what the stream has; `what` names it in the logs.
  virtual void put(const std::string& what, std::function<void()> work) = 0;
  /// Throws std::logic_error unless [at, at + bytes) lies in one allocation of the stream's device.
  virtual void want(std::uint64_t at, std::size_t bytes) const = 0;
  /// The id of its device.
  virtual std::string device() const = 0;
};

}  // namespace lathe::test
