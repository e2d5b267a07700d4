#include "passes/lowering/pool/region_key.h"

#include <algorithm>
#include <bit>
#include <set>

#include "ir/ops/draws.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/lowering/elementwise/philox_emitter.h"

namespace lathe {

using namespace ir;

namespace {

class KeyWriter {
 public:
  KeyWriter(const LoweringContext& context, const Region& region) : context_(context), region_(region) {
    for (const ValueId member : region.members) {
      collect(member);
      for (const ValueId operand : context.graph[member].operands) reach(operand);
    }
    members_ = region.members;
    sort_unique(members_);
    sort_unique(nodes_);
    for (const ValueId id : nodes_)
      if (has_buffer(id)) key_.buffers.push_back(context.buffer_of(id));
    sort_unique(key_.buffers);
  }

  RegionKey run() {
    write(region_);
    for (const ValueId node : nodes_) write(node);
    return std::move(key_);
  }

 private:
  template <class T>
  static void sort_unique(std::vector<T>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  template <class T>
  static std::int64_t position(const std::vector<T>& sorted, const T& value) {
    return std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
  }

  bool is_member(ValueId id) const { return std::binary_search(members_.begin(), members_.end(), id); }
  /// Whether the value has no memory of its own: it is inlined where it is read, or it is a view.
  bool looks_through(ValueId id) const { return is_alias(context_.graph[id]) || context_.plan.is_inlined(id); }
  /// An inlined scatter_add has a buffer for its positions.
  bool has_buffer(ValueId id) const {
    if (looks_through(id)) return context_.graph[id].op == &ops::scatter_add;
    return context_.plan.is_stored(id);
  }

  void collect(ValueId id) {
    nodes_.push_back(id);
    nodes_.push_back(context_.plan.placement[id].base);
  }

  /// Adds a value that is read, and recursively the operands of values without memory of their own.
  void reach(ValueId value) {
    std::vector<ValueId> work = {value};
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (!seen_.insert(id.index).second) continue;
      collect(id);
      const auto& operands = context_.graph[id].operands;
      if (looks_through(id)) work.insert(work.end(), operands.begin(), operands.end());
    }
  }

  void write(const Region& region) {
    number(static_cast<std::int64_t>(region.kind()));
    shape(region.domain);
    number(region.folded_dims());
    ids(region.members);
    if (const auto* attention = std::get_if<AttentionRegion>(&region.form)) write(*attention);
  }

  void write(const AttentionRegion& attention) {
    number(attention.row);
    list(attention.sequential);
    list(attention.accumulated);
    ids(attention.scores);
    number(static_cast<std::int64_t>(attention.outputs.size()));
    for (const Region& output : attention.outputs) write(output);
  }

  void write(ValueId at) {
    const Node& node = context_.graph[at];
    const bool member = is_member(at), splat = is_splat(node);
    pointer(node.op);
    number(static_cast<std::int64_t>(node.type.dtype));
    shape(node.type.shape);
    for (const Dim& stride : node.type.strides) dim(stride);
    const Placement& placement = context_.plan.placement[at];
    id(placement.base);
    dim(placement.offset);
    number((member ? 1 : 0) + (context_.plan.is_stored(at) ? 2 : 0) + (context_.plan.is_inlined(at) ? 4 : 0));
    number(has_buffer(at) ? position(key_.buffers, context_.buffer_of(at)) : -1);
    if (region_.kind() == RegionKind::product) number((context_.is_fixed(at) ? 1 : 0) + (context_.keeps(at) ? 2 : 0));
    if (!member && !splat && !looks_through(at)) return;  // in memory; its producer does not matter
    attributes(node);
    number(static_cast<std::int64_t>(node.operands.size()));
    for (const ValueId operand : node.operands) id(operand);
    if (!member) return;
    list(context_.plan.member_dims(at));
    list(context_.plan.space_dims(at));
  }

  void number(std::int64_t value) { key_.text.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void pointer(const void* value) { number(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(value))); }
  void id(ValueId value) { number(position(nodes_, value)); }
  void ids(const std::vector<ValueId>& values) {
    number(static_cast<std::int64_t>(values.size()));
    for (const ValueId value : values) id(value);
  }
  void text(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    key_.text += value;
  }
  void dim(const Dim& value) {
    number(value.value().value_or(-1));
    text(value.value() ? value.name() : value.to_string());
  }
  void shape(const Shape& value) { list(value.dims()); }

  void value(bool v) { number(v ? 1 : 0); }
  void value(std::int64_t v) { number(v); }
  void value(int v) { number(v); }
  void value(double v) { number(std::bit_cast<std::int64_t>(v)); }
  void value(const std::string& v) { text(v); }
  void value(DType v) { number(static_cast<std::int64_t>(v)); }
  void value(const Dim& v) { dim(v); }
  void value(const Shape& v) { shape(v); }
  void value(const Number& v) {
    value(v.real());
    number(v.integer_rest());
  }
  void value(const NumberList& v) {
    list(v.reals());
    list(v.integer_rests());
  }
  void value(const ir::Body&) { throw InternalError("a loop has no kernels of its own"); }
  template <class T>
  void value(const std::vector<T>& v) {
    list(v);
  }
  template <class T>
  void list(const std::vector<T>& values) {
    number(static_cast<std::int64_t>(values.size()));
    for (const T& each : values) value(each);
  }

  /// Adds the number of a stream among those of the region.
  void stream(const Node& draw) {
    const std::int64_t salt = stream_salt(draw.attrs.get<std::int64_t>("stream"));
    const auto at = std::find(key_.salts.begin(), key_.salts.end(), salt);
    number(at - key_.salts.begin());
    if (at == key_.salts.end()) key_.salts.push_back(salt);
  }

  void attributes(const Node& node) {
    for (const auto& [name, attribute] : node.attrs.entries()) {
      if (is_draw(*node.op) && name == "stream") {
        stream(node);
        continue;
      }
      number(static_cast<std::int64_t>(attribute.index()));
      std::visit([this](const auto& v) { value(v); }, attribute);
    }
  }

  const LoweringContext& context_;
  const Region& region_;
  std::vector<ValueId> nodes_;    // a node's number is its index here
  std::vector<ValueId> members_;  // sorted
  std::set<std::int32_t> seen_;
  RegionKey key_;
};

}  // namespace

RegionKey region_key(const LoweringContext& context, const Region& region) {
  return KeyWriter(context, region).run();
}

}  // namespace lathe
