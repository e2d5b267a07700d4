#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Values of templates: the subset of Python's values that templates can observe. Containers never change, so values
/// are shared freely. Mutable values (namespaces, loops) are Objects, which belong to one render.
namespace lathe::jinja {

class Budget;
class Dict;
class Object;
class Value;
struct ListView;

enum class Kind : std::uint8_t {
  none,
  missing,
  undefined,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  object
};

struct Text {
  std::string bytes;  ///< UTF-8
  bool safe = false;  ///< markup: text appended to it is HTML-escaped
};

/// An undefined value. `message` is the error message for its use.
struct Undefined {
  std::string message;
  bool unsafe = false;  ///< it exists, but the sandbox hides it
};

struct Sequence {
  mutable std::vector<Value> items;  ///< empty in a view until Value::items() copies them
  int depth = 0;                     ///< nesting depth of containers
  std::shared_ptr<const ListView> view = nullptr;
};

class Value {
 public:
  /// Maximum nesting depth of containers. Exceeding it throws Failure [template_limit].
  static constexpr int max_depth = 100;

  Value() : integer_(0) {}  ///< None
  template <std::same_as<bool> B>
  Value(B value) : kind_(Kind::boolean), boolean_(value) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Value(I value) : kind_(Kind::integer), integer_(static_cast<std::int64_t>(value)) {}
  Value(double value) : kind_(Kind::real), real_(value) {}
  Value(std::string value, bool safe = false);
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  /// The object must outlive the value. Both belong to one render.
  Value(Object* value) : kind_(Kind::object), object_(value) {}

  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// Returns a list that shares its items. `depth` is at least that of its items plus one.
  static Value list(ListView view, int depth);
  /// Returns a dict. For equal keys, the last value wins and keeps the first key's position. Throws Failure
  /// [template_operation] unless keys are strings, numbers, booleans, None, or tuples of these.
  static Value dict(std::vector<std::pair<Value, Value>> items);
  static Value of(Dict dict);
  static Value undefined(std::string message, bool unsafe = false);
  /// Returns the absence of a value: an argument that was not passed, or the end of an iteration.
  static Value missing();

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_none() const { return is(Kind::none); }
  bool is_missing() const { return is(Kind::missing); }
  bool is_undefined() const { return is(Kind::undefined); }
  bool is_string() const { return is(Kind::string); }
  bool is_sequence() const { return is(Kind::list) || is(Kind::tuple); }
  /// Returns true for booleans, integers and floats.
  bool is_number() const { return is(Kind::boolean) || is_integer() || is(Kind::real); }
  /// Returns true for booleans too, because Python's bool is an int.
  bool is_integer() const { return is(Kind::integer) || is(Kind::boolean); }

  // Each accessor requires its kind.
  bool boolean() const;
  std::int64_t integer() const;  ///< also for booleans
  double real() const;           ///< for any number
  const std::string& string() const { return text().bytes; }
  const Text& text() const;
  const std::vector<Value>& items() const;  ///< of lists and tuples; the first call copies the items of a view
  std::size_t size() const;                 ///< of lists and tuples, like item()
  const Value& item(std::size_t at) const;
  const ListView* view() const;  ///< of a list that shares its items; null otherwise
  const Dict& dict() const;
  Object* object() const;
  const Undefined& undefined() const;

  /// Returns whether both are the same object, like Python's `is`.
  bool same_as(const Value& other) const;
  /// Returns the nesting depth of containers; 0 for other values.
  int depth() const;

 private:
  Value(Kind kind, std::shared_ptr<const void> held) : kind_(kind), integer_(0), held_(std::move(held)) {}
  /// Throws InternalError for a value of another kind.
  void require(Kind kind) const;
  const Sequence& sequence() const;

  // Not a std::variant, which takes long to compile in every program.
  Kind kind_ = Kind::none;
  union {
    bool boolean_;
    std::int64_t integer_;
    double real_;
    Object* object_;
  };
  std::shared_ptr<const void> held_;  ///< an Undefined, Text, Sequence or Dict
};

/// A dict. Keys are in insertion order.
class Dict {
 public:
  using Item = std::pair<Value, Value>;

  const std::vector<Item>& items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  int depth() const { return depth_; }
  /// Returns the value of `key` or null. Throws Failure [template_operation] for a value that cannot be a key.
  const Value* find(const Value& key, Budget& budget) const;
  const Value* find(std::string_view key) const;

 protected:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Slot {
    std::uint64_t hash = 0;
    std::size_t position = none;  ///< in items_
  };
  /// Returns the position of the key for which same(key) holds, or `none`.
  template <class Same>
  std::size_t position(std::uint64_t hash, const Same& same) const;

  std::vector<Item> items_;
  std::vector<Slot> slots_;  ///< open addressing; the size is a power of two, at least twice the number of items
  int depth_ = 0;
};

/// Builds a dict key by key.
class DictBuilder : private Dict {
 public:
  DictBuilder() = default;
  /// Starts with all items of `base`.
  explicit DictBuilder(const Dict& base);
  using Dict::find;
  using Dict::items;
  using Dict::size;

  /// Sets the value of a key. An existing key keeps its position. Throws Failure [template_operation] for a value
  /// that cannot be a key.
  void set(Value key, Value value, Budget& budget);
  void set(std::string_view key, Value value);
  Value finish() &&;

 private:
  void put(std::size_t position, std::uint64_t hash, Value key, Value value);
  void enter(std::uint64_t hash, std::size_t position);
};

/// Returns Python's name of the type: "str", "NoneType", "dict_items".
std::string_view type_name(const Value& value);
/// Returns the name of a value in Jinja's messages: "dict object", "None".
std::string described(const Value& value);
/// Throws Failure [template_undefined] or [template_unsafe] if the value is undefined.
void require_defined(const Value& value);

/// A view of the first `total` items of a longer list, or of some of them. One item may be replaced.
struct ListView {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::shared_ptr<const std::vector<Value>> source;
  std::size_t total = 0;  ///< number of items of `source` that views of this view may reach
  std::int64_t start = 0, step = 1;
  std::size_t count = 0;
  std::size_t replaced = none;  ///< index in `source`
  Value replacement = {};

  const Value& item(std::size_t at) const;
  std::vector<Value> items() const;
  /// Returns the view of `size` items from item `first` on, `stride` apart.
  ListView slice(std::int64_t first, std::int64_t stride, std::int64_t size) const;
  /// Returns whether the view has all items from `start` up to `total`.
  bool reaches_end() const;
};

}  // namespace lathe::jinja
