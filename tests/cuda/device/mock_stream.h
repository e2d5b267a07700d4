#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace lathe::test {

/// The object behind a mock driver's stream handle, to which mocks of other libraries add work.
class MockStream {
 public:
  virtual ~MockStream() = default;
  /// Appends work to the stream; `what` is its name in the logs.
  virtual void put(const std::string& what, std::function<void()> work) = 0;
  /// Throws std::logic_error unless [at, at + bytes) is in one allocation of the stream's device.
  virtual void want(std::uint64_t at, std::size_t bytes) const = 0;
  /// Returns the id of its device.
  virtual std::string device() const = 0;
};

}  // namespace lathe::test
