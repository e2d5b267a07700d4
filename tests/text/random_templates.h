#pragma once

#include <random>
#include <string>

#include "runtime/text/template/values/value.h"

namespace lathe::test {

/// Makes chat templates that look at the list of messages and at its end in every way, and conversations for them.
class RandomTemplates {
 public:
  explicit RandomTemplates(std::uint64_t seed) : random_(seed) {}
  std::string text();
  /// At least one message, with the roles system, user, assistant and tool.
  std::vector<jinja::Value> messages(std::size_t most);
  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  std::string loop();
  jinja::Value message(bool first);

  std::mt19937_64 random_;
};

}  // namespace lathe::test
