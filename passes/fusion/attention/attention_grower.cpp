#include "passes/fusion/attention/attention_grower.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/ancestors.h"
#include "passes/fusion/inline_policy.h"
#include "passes/fusion/prepare/align.h"
#include "passes/fusion/regions/own_region.h"
#include "passes/fusion/regions/region_size.h"

namespace lathe {

using namespace ir;

namespace {

// Limit on the arithmetic of a mask or bias that every reader recomputes.
constexpr int inline_limit = 64;
// Limit on the size of the dims that matmuls of an attention sum over or add.
constexpr std::int64_t widest = 512;

bool is_float_contraction(const Node& node) { return node.op->as<Contraction>() && is_float(node.type.dtype); }

/// Returns the domain dims of the labels of a contraction's result.
std::map<char, int> dims_of_labels(const ContractionRoles& roles, const std::vector<int>& dims) {
  std::map<char, int> found;
  for (std::size_t i = 0; i < roles.out.size(); ++i)
    if (dims[i] >= 0) found[roles.out[i]] = dims[i];
  return found;
}

std::set<int> mapped(const std::string& labels, const std::map<char, int>& dims) {
  std::set<int> found;
  for (const char c : labels)
    if (const auto at = dims.find(c); at != dims.end()) found.insert(at->second);
  return found;
}

/// Returns the domain dims of a reduction's result, given those of its operand's dims.
std::vector<int> reduced_member_dims(const Node& reduce, const std::vector<int>& space,
                                     const std::vector<int>& reduced) {
  std::vector<int> dims;
  for (int i = 0; i < static_cast<int>(space.size()); ++i) {
    const bool is_folded = std::find(reduced.begin(), reduced.end(), i) != reduced.end();
    if (!is_folded)
      dims.push_back(space[i]);
    else if (reduce.attrs.get<bool>("keepdim"))
      dims.push_back(-1);
  }
  return dims;
}

bool contains(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

constexpr char no_label = ' ';  // of the dim that represents a single row

/// Whether every column has scores of one query per outer index: apart from the columns, no dim belongs to only one
/// operand, except dims of size 1.
bool is_one_row(const Node& scores, char columns) {
  const ContractionRoles roles = scores.op->as<Contraction>()->roles(scores);
  const std::string queries = contains(roles.lhs_free(), columns) ? roles.rhs_free() : roles.lhs_free();
  return std::all_of(queries.begin(), queries.end(),
                     [&](char c) { return scores.type.shape[static_cast<int>(roles.out.find(c))].is(1); });
}

}  // namespace

AttentionNotes::AttentionNotes(const Graph& graph) : states(graph, State::apart) {
  plan.dims = NodeMap<std::vector<int>>(graph);
  plan.space = NodeMap<std::vector<int>>(graph);
}

AttentionGrower::AttentionGrower(const AttentionSubject& subject, AttentionNotes& notes, ValueId scores, char columns,
                                 const AttentionSearchOptions& options)
    : s_(subject),
      graph_(subject.graph),
      sums_taken_(options.sums),
      decode_(options.decode),
      one_row_(options.decode && is_one_row(graph_[scores], columns)),
      notes_(notes) {
  const Node& node = graph_[scores];
  const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
  std::string order = roles.out;
  order.erase(std::remove(order.begin(), order.end(), columns), order.end());
  order += columns;
  if (one_row_) order.insert(order.begin(), no_label);
  Dims dims;
  for (std::size_t i = 0; i < roles.out.size(); ++i) {
    const int d = static_cast<int>(order.find(roles.out[i]));
    dims.push_back(node.type.shape[static_cast<int>(i)].is(1) ? -1 : d);
  }
  for (const char c : order)
    region_.domain.push_back(c == no_label ? Dim(1) : node.type.shape[static_cast<int>(roles.out.find(c))]);
  region_.form = RowsRegion{.inner = 1};
  for (int d = 0; d + 1 < region_.domain.rank(); ++d)
    if (one_row_ ? d == 0 : !region_.domain[d].is(1)) rows_.insert(d);
  failed_ = !add_seed(scores, dims);
}

void AttentionGrower::set_state(ValueId id, State state) {
  notes_.states[id] = state;
  noted_.push_back(id);
  if (state != State::member) tainting_.push_back(id);
}

void AttentionGrower::set_dims(ValueId id, Dims dims, Dims space) {
  notes_.plan.dims[id] = std::move(dims);
  notes_.plan.space[id] = std::move(space);
  noted_.push_back(id);
}

void AttentionGrower::clear_notes() {
  for (const ValueId id : noted_) {
    notes_.states[id] = State::apart;
    notes_.plan.dims[id].clear();
    notes_.plan.space[id].clear();
  }
  noted_.clear();
  tainting_.clear();
}

/// Whether a node depends on the result of the attention, or on a reader of its members that cannot join.
bool AttentionGrower::is_tainted(ValueId id) const {
  const auto& operands = graph_[id].operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](ValueId operand) { return s_.dependence.needs_any(operand, tainting_); });
}

bool AttentionGrower::reject(ValueId at, std::string reason) {
  rejections_.push_back({at, std::move(reason)});
  return false;
}

bool AttentionGrower::restrict_rows(ValueId at, const std::set<int>& candidates) {
  if (one_row_) return true;
  std::set<int> both;
  std::set_intersection(rows_.begin(), rows_.end(), candidates.begin(), candidates.end(),
                        std::inserter(both, both.begin()));
  if (both.empty()) return reject(at, "no dim is left that could be the rows of the scores");
  rows_ = std::move(both);
  return true;
}

/// A contraction computes scores if the columns are free on one side and rows on the other.
bool AttentionGrower::add_seed(ValueId id, const Dims& dims) {
  const Node& node = graph_[id];
  if (!is_float(node.type.dtype)) return reject(id, "it is not a product of floats");
  const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
  const auto label_dims = dims_of_labels(roles, dims);
  const int columns = region_.domain.rank() - 1;
  const std::set<int> left = mapped(roles.lhs_free(), label_dims), right = mapped(roles.rhs_free(), label_dims);
  if (!left.count(columns) && !right.count(columns))
    return reject(id, "its columns are a batch dim of the product, not a dim of one operand");
  for (std::size_t i = 0; i < roles.out.size(); ++i)
    if (dims[i] < 0 && !node.type.shape[static_cast<int>(i)].is(1)) return reject(id, "it spans another space");
  for (const char c : roles.contracted()) {
    const Dim& size = graph_[node.operands[0]].type.shape[static_cast<int>(roles.lhs.find(c))];
    if (size.value().value_or(0) > widest)
      return reject(id,
                    fmt::format("it sums over {} elements; attention is fused up to {}", size.to_string(), widest));
  }
  if (!restrict_rows(id, left.count(columns) ? right : left)) return false;
  seeds_[id] = dims;
  return true;
}

void AttentionGrower::reset() {
  clear_notes();
  region_.members.clear();
  consumers_.clear();
  sums_.clear();
  accumulated_.clear();
  inline_.clear();
  pulled_.clear();
  arithmetic_ = 0;
  rejections_.clear();
  summed_.reset();
}

std::optional<AttentionGroup> AttentionGrower::run() {
  do {
    grew_ = false;
    if (failed_) return std::nullopt;
    reset();
    if (!scan()) return std::nullopt;
  } while (grew_);
  return finish();
}

/// Visits the seeds and the readers of members, up to the last node that reads one directly or through one view.
bool AttentionGrower::scan() {
  ValueId last = seeds_.rbegin()->first;
  std::set<ValueId> pending;
  for (const auto& [seed, dims] : seeds_) pending.insert(seed);
  while (!pending.empty() && *pending.begin() <= last && !grew_) {
    const ValueId id = *pending.begin();
    pending.erase(pending.begin());
    const bool transparent = s_.is_transparent(id);
    if (!transparent) visit(id);
    if (failed_) return false;
    if (!transparent && state(id) != State::member) continue;
    const auto& operands = graph_[id].operands;
    const auto is_member = [&](ValueId operand) { return state(operand) == State::member; };
    const bool reaches =
        !transparent || (std::any_of(operands.begin(), operands.end(), is_member) && !is_tainted(id));
    for (const ValueId user : s_.users[id]) {
      pending.insert(user);
      if (reaches) last = std::max(last, user);
    }
  }
  return true;
}

void AttentionGrower::visit(ValueId id) {
  const Node& node = graph_[id];
  const auto& reads = s_.reads(id);
  const bool reads_member =
      std::any_of(reads.begin(), reads.end(), [&](const Read& read) { return state(read.value) == State::member; });
  if (const auto seed = seeds_.find(id); seed != seeds_.end()) {
    failed_ = reads_member || is_tainted(id);
    if (failed_) {
      reject(id, "it depends on the result of the attention");
      return;
    }
    failed_ = !make_member(id, seed->second, seed->second);
    return;
  }
  if (node.op->as<Argument>() || node.op == &ops::constant || !reads_member) return;
  const bool tainted = is_tainted(id);
  if (tainted || !join(id)) {
    if (tainted) reject(id, "it depends on the result of the attention");
    if (!grew_) set_state(id, State::rejected);
  }
}

/// Adds the arithmetic of a node to that of the kernel; returns false if it would become too large.
bool AttentionGrower::count(ValueId id) {
  const Node& node = graph_[id];
  std::int64_t arithmetic = arithmetic_ + (node.op->as<Contraction>() ? product_arithmetic : arithmetic_cost(node));
  for (const ValueId operand : node.operands) arithmetic += s_.in_place[operand];
  if (arithmetic * attention_copies > most_code)
    return reject(id, "with it the attention is too large for one kernel");
  arithmetic_ = arithmetic;
  return true;
}

bool AttentionGrower::make_member(ValueId id, const Dims& dims, const Dims& space) {
  if (!count(id)) return false;
  set_state(id, State::member);
  set_dims(id, dims, space);
  region_.members.push_back(id);
  return true;
}

bool AttentionGrower::join(ValueId id) {
  const Node& node = graph_[id];
  if (node.op->as<Contraction>()) return join_consumer(id);
  if (own_region(node)) return reject(id, "it has a kernel of its own");
  const Shape& space = index_space(graph_, node);
  const auto dims = align(graph_, notes_.plan, region_, space, s_.reads(id));
  if (!dims) return reject(id, "it reads the scores in another arrangement than they are made in");
  if (node.op->as<Reduce>()) return join_reduction(id, *dims);
  if (covers_domain(region_, *dims) && !pull(id, *dims))
    return reject(id, "it belongs to scores that are computed again");
  return grew_ || make_member(id, *dims, *dims);
}

bool AttentionGrower::join_reduction(ValueId id, const Dims& space) {
  const Node& node = graph_[id];
  const int columns = region_.domain.rank() - 1;
  std::vector<int> folded;
  const auto reduced = reduced_dims(graph_, node);
  for (const int d : reduced)
    if (space[d] >= 0) folded.push_back(space[d]);
  if (folded != std::vector<int>{columns}) return join_sum(id, space, {folded.begin(), folded.end()});
  return make_member(id, reduced_member_dims(node, space, reduced), space);
}

/// The gradient of a value that is shared over outer dims: it is accumulated in memory over their iterations.
bool AttentionGrower::join_sum(ValueId id, const Dims& space, const std::set<int>& folded) {
  const Node& node = graph_[id];
  const DType dtype = node.type.dtype;
  const bool is_compute_dtype = dtype == f32 || dtype == f64;
  const bool taken = sums_taken_ == OuterReductions::all
                         ? is_float(dtype)
                         : sums_taken_ == OuterReductions::f32_and_f64 && is_compute_dtype;
  const bool adds = node.op->as<Reduce>()->combine == ScalarOp::add;
  if (one_row_ || !taken || !adds || folded.count(region_.domain.rank() - 1) || !covers_domain(region_, space))
    return reject(id, "it does not reduce along the columns alone");
  std::set<int> rows;
  std::set_difference(rows_.begin(), rows_.end(), folded.begin(), folded.end(), std::inserter(rows, rows.begin()));
  if (!count(id) || !restrict_rows(id, rows)) return false;
  set_dims(id, reduced_member_dims(node, space, reduced_dims(graph_, node)), space);
  accumulated_.insert(folded.begin(), folded.end());
  set_state(id, State::consumer);
  sums_.push_back(id);
  return true;
}

bool AttentionGrower::sums_columns(const std::set<int>& contracted) const {
  return contracted == std::set<int>{region_.domain.rank() - 1};
}

bool AttentionGrower::join_consumer(ValueId id) {
  const Node& node = graph_[id];
  if (!is_float_contraction(node)) return reject(id, "it is not a product of floats");
  AttentionGroup view;
  view.domain = region_.domain;
  for (const ValueId member : region_.members) view.dims[member] = dims_of(member);
  const auto operand = member_operand(graph_, view, id);
  if (!operand) return reject(id, "it reads the weights through a reshape or a slice, or with both operands");
  const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
  const std::string &own = operand->operand == 0 ? roles.lhs : roles.rhs,
                    &other = operand->operand == 0 ? roles.rhs : roles.lhs;
  std::set<int> contracted, shared, all;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const int d = operand->dims[i];
    if (d < 0) continue;
    all.insert(d);
    if (contains(other, own[i])) (contains(roles.out, own[i]) ? shared : contracted).insert(d);
  }
  for (int d = 0; d < region_.domain.rank(); ++d)
    if (!region_.domain[d].is(1) && !all.count(d)) return reject(id, "it reads a value of the rows alone");
  for (const char c : other) {
    const ValueId o = node.operands[operand->operand == 0 ? 1 : 0];
    const Dim& size = graph_[o].type.shape[static_cast<int>(other.find(c))];
    if (!contains(own, c) && size.value().value_or(0) > widest)
      return reject(
          id, fmt::format("it spreads over {} elements; attention is fused up to {}", size.to_string(), widest));
  }
  std::set<int> rows;
  const int columns = region_.domain.rank() - 1;
  if (sums_columns(contracted)) {
    for (const int d : all)
      if (d != columns && !shared.count(d)) rows.insert(d);
  } else {
    if (one_row_ || contracted.count(columns) || shared.count(columns))
      return reject(id, "it sums over neither the columns alone nor the rows");
    rows = contracted;
    if (summed_ && *summed_ != contracted) return reject(id, "it sums over other dims than its neighbours");
  }
  if (!count(id) || !restrict_rows(id, rows)) return false;
  if (!sums_columns(contracted)) summed_ = contracted;
  set_state(id, State::consumer);
  consumers_.push_back(id);
  return true;
}

/// Adds or inlines the values over rows and columns that `reader` reads and that are not members. Returns false if
/// one of them depends on a copy of the group's own scores, which belongs to another group.
bool AttentionGrower::pull(ValueId reader, const Dims& reader_dims) {
  for (const Read& read : s_.reads(reader)) {
    if (state(read.value) == State::member || !read.affine) continue;
    Dims dims;
    bool direct = true;
    for (const AffineComponent& c : read.index) {
      direct = direct && (c.dim < 0 || c.is_plain());
      dims.push_back(c.dim < 0 ? -1 : reader_dims[c.dim]);
    }
    if (direct && !pull_value(read.value, dims)) return false;
    if (grew_) break;
  }
  return true;
}

AttentionGrower::Pull AttentionGrower::pull_one(ValueId value, const Dims& dims) {
  const Node& node = graph_[value];
  const auto has = [&](int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  const bool over_rows = one_row_ || std::any_of(rows_.begin(), rows_.end(), has);
  if (!has(region_.domain.rank() - 1) || !over_rows || s_.in_memory[value]) return Pull::leave;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] >= 0 && node.type.shape[static_cast<int>(i)] != region_.domain[dims[i]]) return Pull::leave;
  if (is_float_contraction(node)) return pull_product(value, dims) ? Pull::leave : Pull::stop;
  return node.op->as<Elementwise>() ? Pull::look_into : Pull::leave;
}

bool AttentionGrower::pull_value(ValueId value, const Dims& dims) {
  struct Opened {
    ValueId value;
    Dims dims;
    std::size_t next = 0;  // index of the next read
  };
  std::vector<Opened> open;
  const auto enter = [&](ValueId id, const Dims& at) {
    if (!pulled_.emplace(id, at).second) return true;
    const Pull pull = pull_one(id, at);
    if (pull == Pull::look_into) open.push_back({id, at});
    return pull != Pull::stop;
  };
  if (!enter(value, dims)) return false;
  while (!open.empty() && !grew_) {
    Opened& now = open.back();
    const std::vector<Read>& reads = s_.reads(now.value);
    if (now.next == reads.size()) {
      const int cost = cost_in_place(now.value);
      if (cost <= inline_limit && inline_.insert(now.value).second) arithmetic_ += cost;
      open.pop_back();
      continue;
    }
    const Read& read = reads[now.next++];
    const auto has_windows = [](const AffineComponent& c) { return !c.more.empty(); };
    if (!read.affine || std::any_of(read.index.begin(), read.index.end(), has_windows)) continue;
    Dims inner;
    for (const AffineComponent& c : read.index) inner.push_back(c.dim < 0 ? -1 : now.dims[c.dim]);
    if (!enter(read.value, inner)) return false;
  }
  return true;
}

/// Returns the cost of computing a value where it is read.
int AttentionGrower::cost_in_place(ValueId value) const {
  const auto computed = [&](ValueId id) { return id == value || s_.is_transparent(id) || inline_.contains(id); };
  std::map<ValueId, int> costs;
  for (const ValueId id : ancestors(graph_, value, computed)) {
    if (!computed(id)) continue;
    int cost = is_alias(graph_[id]) ? 0 : arithmetic_cost(graph_[id]);
    for (const ValueId operand : graph_[id].operands)
      if (const auto known = costs.find(operand); known != costs.end()) cost += known->second;
    costs[id] = std::min(cost, inline_limit + 1);
  }
  return costs.at(value);
}

bool AttentionGrower::pull_product(ValueId value, const Dims& dims) {
  const Node& node = graph_[value];
  for (const auto& [seed, seed_dims] : seeds_) {
    const Node& other = graph_[seed];
    if (other.op == node.op && other.operands == node.operands && other.attrs == node.attrs) return false;
  }
  for (int d = 0; d < region_.domain.rank(); ++d)
    if (!region_.domain[d].is(1) && std::find(dims.begin(), dims.end(), d) == dims.end()) return true;
  const auto rows = rows_;
  const auto rejected = rejections_;
  grew_ = add_seed(value, dims);
  if (!grew_) {  // it is read from memory, like any other operand
    rows_ = rows;
    rejections_ = rejected;
  }
  return true;
}

}  // namespace lathe
