#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lathe {

/// Stores compiled code and tuning results across processes. Keys are 64 hex digits derived from everything that
/// affects the bytes. Must be thread-safe. The store verifies the data that it returns; code that still fails to link
/// is recompiled.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  virtual std::optional<std::string> get(const std::string& key) = 0;
  virtual void put(const std::string& key, std::string_view bytes) = 0;
};

}  // namespace lathe
