#include "models/generation/cache_states.h"

#include <algorithm>
#include <cstring>

#include "frontend/nn/attention/key_value_cache.h"
#include "ir/support/tensors/tensor_block.h"
#include "ir/tensor/op/op.h"

namespace lathe {

namespace {

constexpr std::int64_t first_capacity = 256, growth = 4;

/// Copies the rows of [B, kv, rows, d] that both tensors have.
void copy_rows(const HostTensor& from, HostTensor& to) {
  const std::int64_t blocks = from.shape()[0] * from.shape()[1];
  if (blocks == 0) return;
  const std::size_t step_from = from.bytes() / static_cast<std::size_t>(blocks),
                    step_to = to.bytes() / static_cast<std::size_t>(blocks);
  for (std::size_t i = 0; i < static_cast<std::size_t>(blocks); ++i)
    std::memcpy(to.data() + i * step_to, from.data() + i * step_from, std::min(step_from, step_to));
}

}  // namespace

void CacheStates::learn(const ir::Graph& graph) {
  states_.clear();
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value == "state" && nn::is_cache_state(node.name))
      states_.push_back({node.name, node.type.dtype, node.type.shape});
  }
}

void CacheStates::fit(Parameters& store, const DimBindings& sizes, bool keep) const {
  std::vector<TensorSpec> specs;
  bool fits = true;
  for (const State& state : states_) {
    specs.push_back({state.dtype, state.shape.evaluate(sizes)});
    fits = fits && store.contains(state.name) && store.get(state.name).shape() == specs.back().shape;
  }
  if (fits) return;
  std::vector<HostTensor> rows = make_block(specs);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::string& name = states_[i].name;
    if (keep && store.contains(name)) copy_rows(store.get(name), rows[i]);
    store.set(name, std::move(rows[i]));
  }
}

void CacheStates::repeat(const Parameters& from, Parameters& to, std::int64_t count) const {
  std::vector<TensorSpec> specs;
  for (const State& state : states_) {
    std::vector<std::int64_t> shape = from.get(state.name).shape();
    shape.front() = count;
    specs.push_back({state.dtype, shape});
  }
  std::vector<HostTensor> copies = make_block(specs);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const HostTensor& one = from.get(states_[i].name);
    for (std::int64_t n = 0; n < count; ++n)
      std::memcpy(copies[i].data() + static_cast<std::size_t>(n) * one.bytes(), one.data(), one.bytes());
    to.set(states_[i].name, std::move(copies[i]));
  }
}

void CacheStates::copy_sequence(const Parameters& from, Parameters& to, std::int64_t row) const {
  for (const State& state : states_) {
    const HostTensor& one = from.get(state.name);
    HostTensor all = to.get(state.name);
    LATHE_ASSERT(one.bytes() * static_cast<std::size_t>(all.shape()[0]) == all.bytes());
    std::memcpy(all.data() + static_cast<std::size_t>(row) * one.bytes(), one.data(), one.bytes());
    to.set(state.name, std::move(all));
  }
}

void CacheStates::erase(Parameters& store) const {
  for (const State& state : states_)
    if (store.contains(state.name)) store.erase(state.name);
}

std::int64_t CacheStates::bytes(const Parameters& store) const {
  std::int64_t sum = 0;
  for (const State& state : states_)
    if (store.contains(state.name)) sum += static_cast<std::int64_t>(store.get(state.name).bytes());
  return sum;
}

std::int64_t CacheStates::capacity(std::int64_t now, std::int64_t length, std::int64_t most) {
  std::int64_t capacity = std::max(now, first_capacity);
  while (capacity < length) capacity *= growth;
  return std::min(capacity, std::max(most, length));
}

}  // namespace lathe
