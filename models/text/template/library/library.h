#pragma once

#include <span>
#include <string_view>

#include "models/text/template/values/object.h"

namespace lathe::jinja {

struct FilterEntry {
  std::string_view name;
  /// subject | name(arguments)
  Value (*apply)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

/// Returns the filter of that name, or null.
const FilterEntry* find_filter(std::string_view name);
/// Returns whether Jinja has the filter but this subset does not.
bool is_unsupported_filter(std::string_view name);

// Filters by their kind of subject.
std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> number_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> selection_filters();

/// Attribute argument of Jinja's filters: "a.b.0" selects nested items; None is the item itself.
class AttributeGetter {
 public:
  /// If `ignore_case`, returns strings in lower case. `otherwise` replaces undefined values, unless it is missing.
  AttributeGetter(Runtime& runtime, const Value& attribute, bool ignore_case = false,
                  Value otherwise = Value::missing());
  Value operator()(Runtime& runtime, Value item) const;

 private:
  std::vector<Value> steps_;
  bool ignore_case_;
  Value otherwise_;
};

struct MethodEntry {
  std::string_view name;
  /// self.name(arguments)
  Value (*call)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

/// Returns an attribute of a value that is not an element: a bound method or an attribute of an object. Returns
/// missing if it does not exist, and undefined (unsafe) for mutating methods of lists and dicts. Throws Failure
/// [template_unsupported] for Python methods that this subset lacks.
Value bound_attribute(Runtime& runtime, const Value& value, std::string_view name);

std::span<const MethodEntry> string_methods();
std::span<const MethodEntry> string_searches();
std::span<const MethodEntry> string_questions();
std::span<const MethodEntry> sequence_methods();
std::span<const MethodEntry> dict_methods();

/// A test: the name after `is`, and its function.
struct TestEntry {
  std::string_view name;
  /// subject is name(arguments)
  bool (*holds)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

/// Returns the test of that name, or null.
const TestEntry* find_test(std::string_view name);

}  // namespace lathe::jinja
