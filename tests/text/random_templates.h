#pragma once

#include <random>
#include <string>

#include "models/text/template/values/value.h"

namespace lathe::test {

/// Creates random chat templates that use the list of messages and its end in many ways, and conversations for them.
class RandomTemplates {
 public:
  explicit RandomTemplates(std::uint64_t seed) : random_(seed) {}
  std::string text();
  /// Returns at least one message, with the roles system, user, assistant and tool.
  std::vector<jinja::Value> messages(std::size_t most);
  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  std::string loop();
  jinja::Value message(bool first);

  std::mt19937_64 random_;
};

}  // namespace lathe::test
