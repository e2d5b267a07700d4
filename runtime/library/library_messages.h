#pragma once

#include <map>
#include <string>
#include <vector>

namespace lathe {

/// The messages of a library's errors, by number. 0 is success.
class LibraryMessages {
 public:
  /// Returns the number of a message; equal messages have one number.
  int add(const std::string& message) {
    const auto [entry, is_new] = number_.try_emplace(message, static_cast<int>(messages_.size()));
    if (is_new) messages_.push_back(message);
    return entry->second;
  }
  /// Adds messages with consecutive numbers, and returns the first.
  int add_all(const std::vector<std::string>& messages) {
    messages_.insert(messages_.end(), messages.begin(), messages.end());
    return static_cast<int>(messages_.size() - messages.size());
  }
  const std::vector<std::string>& all() const { return messages_; }

 private:
  std::map<std::string, int> number_;
  std::vector<std::string> messages_;
};

}  // namespace lathe
