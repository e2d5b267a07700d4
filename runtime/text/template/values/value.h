#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The values of templates: those of Python as far as templates see them. Containers never change, so values are
/// shared freely; what does change (namespaces, loops) is an Object, which belongs to one render.
namespace lathe::jinja {

class Budget;
class Dict;
class Object;
class Value;

// In the order of Value's alternatives.
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

constexpr std::size_t index(Kind kind) { return static_cast<std::size_t>(kind); }

struct Text {
  std::string bytes;  ///< UTF-8
  bool safe = false;  ///< markup: what is added to it is escaped for HTML
};

/// What using an undefined value says.
struct Undefined {
  std::string message;
  bool unsafe = false;  ///< it exists, but templates may not have it
};

struct ListView;

struct Sequence {
  mutable std::vector<Value> items;  ///< of a view: empty until Value::items() copies them
  int depth = 0;                     ///< of containers within
  std::shared_ptr<const ListView> view = nullptr;
};

class Value {
 public:
  /// No container holds containers more than this deep. Failure [template_limit].
  static constexpr int max_depth = 100;

  Value() = default;  ///< None
  template <std::same_as<bool> B>
  Value(B value) : data_(std::in_place_index<index(Kind::boolean)>, value) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Value(I value) : data_(std::in_place_index<index(Kind::integer)>, static_cast<std::int64_t>(value)) {}
  Value(double value) : data_(std::in_place_index<index(Kind::real)>, value) {}
  Value(std::string value, bool safe = false);
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  /// The object outlives the value: both belong to one render.
  Value(Object* value) : data_(std::in_place_index<index(Kind::object)>, value) {}

  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// Returns a list that shares its items (list_view.h). `depth` is at least that of its items plus one.
  static Value list(ListView view, int depth);
  /// Of equal keys the last counts, at the place of the first. Keys are strings, numbers, booleans, None, or tuples
  /// of those: Failure [template_operation].
  static Value dict(std::vector<std::pair<Value, Value>> items);
  static Value of(Dict dict);
  static Value undefined(std::string message, bool unsafe = false);
  /// No value at all: an argument that was not given, the end of an iteration.
  static Value missing();

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_none() const { return is(Kind::none); }
  bool is_missing() const { return is(Kind::missing); }
  bool is_undefined() const { return is(Kind::undefined); }
  bool is_string() const { return is(Kind::string); }
  bool is_sequence() const { return is(Kind::list) || is(Kind::tuple); }
  /// True, False and numbers.
  bool is_number() const { return is(Kind::boolean) || is_integer() || is(Kind::real); }
  /// Python's int has its bool within.
  bool is_integer() const { return is(Kind::integer) || is(Kind::boolean); }

  // Each needs its kind.
  bool boolean() const { return std::get<index(Kind::boolean)>(data_); }
  std::int64_t integer() const;  ///< of booleans too
  double real() const;           ///< of any number
  const std::string& string() const { return text().bytes; }
  const Text& text() const { return *std::get<index(Kind::string)>(data_); }
  const std::vector<Value>& items() const;  ///< of lists and tuples; copies the items of a view at the first call
  std::size_t size() const;                 ///< of lists and tuples, as is item()
  const Value& item(std::size_t at) const;
  const ListView* view() const;  ///< of a list that shares its items; otherwise null
  const Dict& dict() const { return *std::get<index(Kind::dict)>(data_); }
  Object* object() const { return std::get<index(Kind::object)>(data_); }
  const Undefined& undefined() const { return *std::get<index(Kind::undefined)>(data_); }

  /// Whether both are one and the same, as Python's `is` has it.
  bool same_as(const Value& other) const;
  /// How deep containers lie within: 0 for what is none.
  int depth() const;

 private:
  struct Missing {
    bool operator==(const Missing&) const = default;
  };
  // In the order of Kind.
  std::variant<std::monostate, Missing, std::shared_ptr<const Undefined>, bool, std::int64_t, double,
               std::shared_ptr<const Text>, std::shared_ptr<const Sequence>, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, Object*>
      data_;
};

/// Keys in the order in which they were first given.
class Dict {
 public:
  using Item = std::pair<Value, Value>;

  const std::vector<Item>& items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  int depth() const { return depth_; }
  /// Null where there is none. Failure [template_operation] for what is no key.
  const Value* find(const Value& key, Budget& budget) const;
  const Value* find(std::string_view key) const;

 protected:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Slot {
    std::uint64_t hash = 0;
    std::size_t position = none;  ///< in items_
  };
  /// The position of the key for which same(key) holds, or none.
  template <class Same>
  std::size_t position(std::uint64_t hash, const Same& same) const;

  std::vector<Item> items_;
  std::vector<Slot> slots_;  ///< open addressing; a power of two, at least twice as many as items
  int depth_ = 0;
};

/// Makes a dict key by key.
class DictBuilder : private Dict {
 public:
  DictBuilder() = default;
  /// All keys of `base` first.
  explicit DictBuilder(const Dict& base) : Dict(base) { --depth_; }
  using Dict::find;
  using Dict::items;
  using Dict::size;

  /// A key that is there keeps its place. Failure [template_operation] for what is no key.
  void set(Value key, Value value, Budget& budget);
  void set(std::string_view key, Value value);
  Value finish() &&;

 private:
  void put(std::size_t position, std::uint64_t hash, Value key, Value value);
  void enter(std::uint64_t hash, std::size_t position);
};

/// Python's name of the type: "str", "NoneType", "dict_items".
std::string_view type_name(const Value& value);
/// As Jinja names a value in messages: "dict object", "None".
std::string described(const Value& value);
/// Throws Failure [template_undefined] or [template_unsafe] for what is undefined.
void require_defined(const Value& value);

}  // namespace lathe::jinja
