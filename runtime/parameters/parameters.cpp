#include "runtime/parameters/parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/support/tensors/tensor_block.h"
#include "passes/memory/memory_plan.h"
#include "runtime/files/mapped_pages.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/parameters/parameter_store.h"

namespace lathe {

namespace {

WriteCount new_count() { return std::make_shared<std::atomic<std::uint64_t>>(0); }

std::string describe(const Program::Slot& slot) {
  return fmt::format("{}{}", name(slot.dtype), slot.shape.to_string());
}

bool fits(const Program::Slot& slot, const std::vector<std::int64_t>& shape) {
  if (static_cast<std::size_t>(slot.shape.rank()) != shape.size()) return false;
  for (int d = 0; d < slot.shape.rank(); ++d) {
    const std::int64_t size = shape[d];
    if (slot.shape[d].value().value_or(size) != size) return false;
  }
  return true;
}

/// Returns whether a value can have both types.
bool agree(const Program::Slot& a, const Program::Slot& b) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) return false;
  for (int d = 0; d < a.shape.rank(); ++d)
    if (a.shape[d].equals(b.shape[d]) == Dim::Answer::no) return false;
  return true;
}

void check_type(const ParameterStore::Declaration& declared, const HostTensor& value, std::string_view label) {
  const Program::Slot& slot = declared.slot;
  const bool dtype = slot.dtype == value.dtype();
  if (dtype && fits(slot, value.shape())) return;
  throw UserError(fmt::format("{} is {} in @{}, the value is {}{}", slot.name, describe(slot), declared.program,
                              name(value.dtype()), shape_to_string(value.shape())),
                  !label.empty() ? label
                  : dtype        ? "argument_shape"
                                 : "argument_dtype",
                  dtype ? "give a value of that shape" : "cast the value first");
}

/// Returns whether the state is Graph::random_state(). Programs that share it draw different numbers, because each
/// run advances it.
bool is_random_state(const Program::Slot& slot) {
  return slot.name == "rng" && slot.dtype == i64 && slot.shape == Shape{2};
}

/// Returns whether the state belongs to an optimizer or a model, such as a running mean or a cache.
bool is_own_state(const Program::Slot& slot) {
  return slot.is_updated && !slot.is_parameter && !is_random_state(slot);
}

bool updates_state(const Program& program, std::string_view name) {
  return std::ranges::any_of(program.states,
                             [&](const Program::Slot& slot) { return is_own_state(slot) && slot.name == name; });
}

void require_states_apart(const Program& one, const Program& other) {
  std::vector<std::string_view> both;
  for (const Program::Slot& slot : one.states)
    if (is_own_state(slot) && updates_state(other, slot.name)) both.push_back(slot.name);
  if (both.empty()) return;
  throw UserError(
      fmt::format("@{} and @{} work on one store and both update {}{}", one.name, other.name, both.front(),
                  both.size() > 1 ? fmt::format(" and {} more", both.size() - 1) : ""),
      "state_shared",
      "give one of the optimizers a name (TrainingOptions::name), or one of the programs a store of its own "
      "(Parameters::borrowed()); CompileOptions::share_states lets both update the same states");
}

}  // namespace

void ParameterStore::attach(const Program& program, bool shares_states) {
  if (!shares_states)
    for (const Program* other : programs)
      if (other != &program) require_states_apart(*other, program);
  for (const Program::Slot& slot : program.states) {
    const auto found = declared.find(slot.name);
    if (found != declared.end()) {
      const Program::Slot& other = found->second.slot;
      if (!agree(other, slot))
        throw UserError(fmt::format("{} is {} in @{} and {} in @{}", slot.name, describe(other),
                                    found->second.program, describe(slot), program.name),
                        "parameters_conflict", "give executables of different models stores of their own");
      continue;
    }
    const Declaration declaration{slot, program.name};
    if (const auto value = values.find(slot.name); value != values.end())
      check_type(declaration, value->second.host, "parameters_conflict");
    declared.emplace(slot.name, declaration);
  }
  if (std::ranges::find(programs, &program) == programs.end()) programs.push_back(&program);
}

bool ParameterStore::is_updated_state(std::string_view name) const {
  return std::ranges::any_of(programs, [&](const Program* program) { return updates_state(*program, name); });
}

void ParameterStore::detach(const Program& program) { std::erase(programs, &program); }

std::vector<StoredTensor*> ParameterStore::resolve(const Program& program) {
  std::vector<StoredTensor*> found;
  for (const Program::Slot& slot : program.states) {
    const auto at = values.find(slot.name);
    found.push_back(at == values.end() ? nullptr : &at->second);
  }
  return found;
}

void ParameterStore::throw_unset(const Program& program, const Program::Slot& slot) const {
  throw UserError(fmt::format("the {} {}: {} of @{} has no value", slot.is_parameter ? "parameter" : "state",
                              slot.name, describe(slot), program.name),
                  "state_unset", "set it in parameters() before the first run; a Trainer also takes initial values");
}

void ParameterStore::missing(std::string_view name) const {
  if (declared.contains(name))
    throw UserError(fmt::format("{} of @{} has no value yet", name, declared.find(name)->second.program),
                    "state_unset", "set it first");
  std::vector<std::string_view> known;
  for (const auto& [other, slot] : declared) known.push_back(other);
  for (const auto& [other, value] : values)
    if (!declared.contains(other)) known.push_back(other);
  const std::string near = did_you_mean(name, known);
  throw UserError(fmt::format("there is no parameter or state named {}", name), "argument_unknown",
                  near.empty() ? fmt::format("there are {}; names() lists them", known.size()) : near);
}

void ParameterStore::set(std::string_view name, HostTensor value, const std::filesystem::path& file) {
  const auto declaration = declared.find(name);
  if (declaration != declared.end())
    check_type(declaration->second, value, {});
  else if (!declared.empty() && !values.contains(name))
    missing(name);
  StoredTensor& stored = values.try_emplace(std::string(name)).first->second;
  stored.host = std::move(value);
  stored.file = file;
  stored.host_is_current = true;
  stored.device_is_current = false;
  const bool is_tracked = stored.host.is_borrowed() ? stored.host.is_private() : !stored.host.is_shared();
  stored.writes = is_tracked ? new_count() : nullptr;
  ++version;
}

Parameters::Parameters() : store_(std::make_shared<ParameterStore>()) {}

Parameters::Parameters(Tensors values) : Parameters() { set(std::move(values)); }

Parameters Parameters::load(const std::filesystem::path& file) {
  const SafetensorsFile opened = SafetensorsFile::open(file);
  Parameters parameters;
  for (const std::string& name : opened.names()) parameters.map(name, opened, name);
  return parameters;
}

void Parameters::save(const std::filesystem::path& file, const std::function<bool(std::string_view)>& filter) const {
  const std::lock_guard lock(store_->mutex);
  std::vector<TensorView> tensors;
  for (auto& [name, stored] : store_->values)
    if (!filter || filter(name)) tensors.push_back(view_of(name, stored.on_host()));
  if (filter && tensors.empty())
    throw UserError(fmt::format("save: the filter selects none of {} values", store_->values.size()),
                    "argument_unknown", "names() lists the names");
  write_safetensors(file, tensors);
}

Parameters Parameters::borrowed() const {
  const std::lock_guard lock(store_->mutex);
  Parameters other;
  for (auto& [name, stored] : store_->values) {
    if (store_->is_updated_state(name)) continue;
    other.store_->set(name, stored.on_host().share_private(), stored.file);
    other.store_->values.find(name)->second.writes = stored.writes;
  }
  return other;
}

void Parameters::copy_to_memory() {
  const std::lock_guard lock(store_->mutex);
  std::vector<StoredTensor*> borrowed;
  std::vector<TensorSpec> specs;
  for (auto& [name, stored] : store_->values) {
    if (!stored.host.is_borrowed()) continue;
    borrowed.push_back(&stored);
    specs.push_back({stored.host.dtype(), stored.host.shape()});
  }
  std::vector<HostTensor> copies = make_block(specs);
  for (std::size_t i = 0; i < borrowed.size(); ++i) {
    HostTensor& host = borrowed[i]->host;
    if (!borrowed[i]->file.empty() && host.is_sole_borrower())
      move_out_of_pages({host.data(), host.bytes()}, copies[i].data());
    else
      std::memcpy(copies[i].data(), host.data(), copies[i].bytes());
    host = std::move(copies[i]);
    borrowed[i]->file.clear();
    borrowed[i]->writes = new_count();
  }
  ++store_->version;
}

bool Parameters::contains(std::string_view name) const {
  const std::shared_lock lock(store_->mutex);
  return store_->values.contains(name);
}

std::vector<std::string> Parameters::names() const {
  const std::shared_lock lock(store_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, stored] : store_->values) names.push_back(name);
  return names;
}

const HostTensor& ParameterStore::value_on_host(std::string_view name) {
  const auto found = values.find(name);
  if (found == values.end()) missing(name);
  return found->second.on_host();
}

const HostTensor& Parameters::get(std::string_view name) const {
  const std::lock_guard lock(store_->mutex);
  return store_->value_on_host(name);
}

HostTensor Parameters::share(std::string_view name) const {
  const std::lock_guard lock(store_->mutex);
  const auto found = store_->values.find(name);
  if (found == store_->values.end()) store_->missing(name);
  HostTensor& value = found->second.on_host();
  return found->second.writes ? value.share_private() : value.share();
}

HostTensor Parameters::snapshot(std::string_view name) const {
  const std::lock_guard lock(store_->mutex);
  return store_->value_on_host(name);
}

void Parameters::set(std::string_view name, HostTensor value) {
  const std::lock_guard lock(store_->mutex);
  store_->set(name, std::move(value));
}

void Parameters::set(Tensors values) {
  const std::lock_guard lock(store_->mutex);
  for (auto& [name, value] : values) store_->set(name, std::move(value));
}

void Parameters::map(std::string_view name, const SafetensorsFile& file, std::string_view tensor) {
  const std::lock_guard lock(store_->mutex);
  store_->set(name, file.mapped(tensor), file.path());
}

void Parameters::erase(std::string_view name) {
  const std::lock_guard lock(store_->mutex);
  const auto found = store_->values.find(name);
  if (found == store_->values.end()) store_->missing(name);
  store_->values.erase(found);
  ++store_->version;
}

Tensors Parameters::values() const {
  const std::lock_guard lock(store_->mutex);
  Tensors copies;
  for (auto& [name, stored] : store_->values) copies.emplace(name, stored.on_host());
  return copies;
}

std::int64_t Parameters::bytes() const {
  const std::shared_lock lock(store_->mutex);
  std::int64_t sum = 0;
  for (const auto& [name, stored] : store_->values) sum += static_cast<std::int64_t>(stored.host.bytes());
  return sum;
}

ParameterLocation Parameters::location(std::string_view name) const {
  const std::shared_lock lock(store_->mutex);
  const auto found = store_->values.find(name);
  if (found == store_->values.end()) store_->missing(name);
  return found->second.location();
}

std::vector<Parameters::Share> Parameters::shares() const {
  const std::shared_lock lock(store_->mutex);
  std::vector<Share> shares;
  for (const auto& [name, stored] : store_->values) {
    const ParameterLocation location = stored.location();
    auto share =
        std::find_if(shares.begin(), shares.end(), [&](const Share& other) { return other.location == location; });
    if (share == shares.end()) share = shares.insert(share, {.location = location});
    ++share->values;
    share->bytes += static_cast<std::int64_t>(stored.host.bytes());
  }
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.bytes > b.bytes; });
  return shares;
}

std::string to_string(const Parameters& parameters) {
  const auto amount = [](std::int64_t values, std::int64_t bytes) {
    return fmt::format("{} value{}, {}", values, values == 1 ? "" : "s", format_bytes(bytes));
  };
  const std::vector<Parameters::Share> shares = parameters.shares();
  std::int64_t values = 0, bytes = 0;
  for (const Parameters::Share& share : shares) values += share.values, bytes += share.bytes;
  std::string text = amount(values, bytes) + "\n";
  for (const Parameters::Share& share : shares)
    text += fmt::format("  {} in {}\n", amount(share.values, share.bytes), to_string(share.location));
  return text;
}

}  // namespace lathe
