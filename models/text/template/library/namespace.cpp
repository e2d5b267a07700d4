#include "models/text/template/library/namespace.h"

#include <fmt/core.h>

#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/values/repr.h"

namespace lathe::jinja {

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_'))
    fail_unsafe(
        fmt::format("Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. "
                    "Please rename the attribute.",
                    string_repr(name)));
  attributes_.set(name, std::move(value));
}

Value Namespace::attribute(Runtime& runtime, std::string_view name) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->read_attribute(*this, name);
  const Value* there = attributes_.find(name);
  return there ? *there : Value::missing();
}

std::string Namespace::repr(Runtime& runtime, int depth) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->give_up();
  std::string text = "<Namespace {", separator;
  for (const auto& [name, value] : attributes_.items()) {
    text += separator + fmt::format("{}: {}", string_repr(name.string()), jinja::repr(runtime, value, depth + 1));
    separator = ", ";
  }
  return text + "}>";
}

}  // namespace lathe::jinja
