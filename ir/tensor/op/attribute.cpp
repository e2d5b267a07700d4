#include "ir/tensor/op/attribute.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ir/support/hash.h"

namespace lathe::ir {

namespace {

/// Different values may have equal hashes: rare or expensive parts are skipped.
struct Hash {
  std::size_t operator()(bool v) const { return v ? 1 : 0; }
  std::size_t operator()(std::int64_t v) const { return static_cast<std::size_t>(v); }
  std::size_t operator()(double v) const { return std::hash<double>{}(v); }  // 0 and -0 are equal, with equal hashes
  std::size_t operator()(const std::string& v) const { return std::hash<std::string>{}(v); }
  std::size_t operator()(DType v) const { return static_cast<std::size_t>(v); }
  std::size_t operator()(const Dim& v) const { return static_cast<std::size_t>(v.value().value_or(-1)); }
  std::size_t operator()(const Shape& v) const { return list(v.dims(), v.dims().size()); }
  std::size_t operator()(const std::vector<std::int64_t>& v) const { return list(v, v.size()); }
  std::size_t operator()(const std::vector<double>& v) const { return list(v, std::min<std::size_t>(v.size(), 16)); }
  std::size_t operator()(const Number& v) const { return (*this)(v.real()); }
  std::size_t operator()(const NumberList& v) const { return (*this)(v.reals()); }
  std::size_t operator()(const Body& v) const { return v.hash(); }

  template <class T>
  std::size_t list(const std::vector<T>& values, std::size_t count) const {
    std::size_t hash = values.size();
    for (std::size_t i = 0; i < count; ++i) hash = mix_hash(hash, (*this)(values[i]));
    return hash;
  }
};

}  // namespace

Attributes::Attributes() = default;
Attributes::Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}
Attributes::Attributes(const Attributes&) = default;
Attributes::Attributes(Attributes&&) noexcept = default;
Attributes& Attributes::operator=(const Attributes&) = default;
Attributes& Attributes::operator=(Attributes&&) noexcept = default;
Attributes::~Attributes() = default;

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : entries())
    if (key == name) return &value;
  return nullptr;
}

void Attributes::set(std::string_view name, Attribute value) {
  Entry entry(name, std::move(value));
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].first == name) return entries_.set(i, std::move(entry));
  entries_.push_back(std::move(entry));
}

const std::vector<Attributes::Entry>& Attributes::entries() const { return entries_.items(); }

bool Attributes::operator==(const Attributes& other) const = default;

std::size_t Attributes::hash() const {
  std::size_t hash = 0;
  for (const auto& [name, value] : entries()) hash = mix_hash(hash, std::visit(Hash(), value));
  return hash;
}

}  // namespace lathe::ir
