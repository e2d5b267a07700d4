#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lathe {

/// Keeps compiled code, and what tuning chose, between processes. Keys are 64 hex digits that cover everything that
/// shaped the bytes. Calls come from several threads at once. The store checks what it hands out; code that does not
/// link all the same is compiled again.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  virtual std::optional<std::string> get(const std::string& key) = 0;
  virtual void put(const std::string& key, std::string_view bytes) = 0;
};

}  // namespace lathe
