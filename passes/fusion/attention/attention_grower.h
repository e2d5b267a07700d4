#pragma once

#include <optional>
#include <set>

#include "ir/tensor/analysis/users.h"
#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/order/dependence.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// A graph with data that the search for attentions needs repeatedly.
struct AttentionSubject {
  explicit AttentionSubject(const ir::Graph& graph);
  const ir::Graph& graph;
  ir::Users users;
  ir::NodeMap<bool> inlined;           ///< masks, iotas, draws, which readers compute themselves
  ir::NodeMap<std::int64_t> in_place;  ///< arithmetic_in_place
  ir::NodeMap<bool> in_memory;         ///< whether it is an output, an update, or the operand of a reshape
  Dependence dependence;

  const ir::Node& node(ir::ValueId id) const { return graph[id]; }
  /// Returns the values that a node reads through views and inlined nodes; nothing for views and inlined nodes.
  const std::vector<Read>& reads(ir::ValueId id) const;
  /// Whether a node is a view or inlined, so that it has no memory.
  bool is_transparent(ir::ValueId id) const;

 private:
  mutable ir::NodeMap<std::optional<std::vector<Read>>> reads_;  // computed on demand
};

/// Data of growers about nodes, by node. Growers use it in sequence, and each clears its own entries.
struct AttentionNotes {
  enum class State : std::uint8_t { apart, member, consumer, rejected };
  explicit AttentionNotes(const ir::Graph& graph);
  ir::NodeMap<State> states;
  FusionPlan plan;  ///< dims and space of the members
};

/// Grows one group from a contraction that computes scores. Linear in the number of users of its members.
class AttentionGrower {
 public:
  AttentionGrower(const AttentionSubject& subject, AttentionNotes& notes, ir::ValueId scores, char columns,
                  const AttentionSearchOptions& options);
  ~AttentionGrower() { clear_notes(); }
  AttentionGrower(const AttentionGrower&) = delete;
  AttentionGrower& operator=(const AttentionGrower&) = delete;

  /// Returns the group, or nothing; rejections() then returns the reasons.
  std::optional<AttentionGroup> run();

  struct Rejection {
    ir::ValueId at;
    std::string reason;
  };
  const std::vector<Rejection>& rejections() const { return rejections_; }
  /// Exponentials that are the only reason why a group is not an attention: they do not belong to a softmax.
  std::optional<ir::ValueId> no_softmax() const { return no_softmax_; }

 private:
  using State = AttentionNotes::State;
  using Dims = std::vector<int>;

  State state(ir::ValueId id) const { return notes_.states[id]; }
  void set_state(ir::ValueId id, State state);
  void clear_notes();
  bool is_tainted(ir::ValueId id) const;
  const Dims& dims_of(ir::ValueId id) const { return notes_.plan.member_dims(id); }
  void set_dims(ir::ValueId id, Dims dims, Dims space);
  bool reject(ir::ValueId at, std::string reason);

  bool add_seed(ir::ValueId id, const Dims& dims);
  bool restrict_rows(ir::ValueId at, const std::set<int>& candidates);
  void reset();
  bool scan();
  void visit(ir::ValueId id);
  bool make_member(ir::ValueId id, const Dims& dims, const Dims& space);
  bool count(ir::ValueId id);
  bool join(ir::ValueId id);
  bool join_reduction(ir::ValueId id, const Dims& space);
  bool join_sum(ir::ValueId id, const Dims& space, const std::set<int>& folded);
  bool join_consumer(ir::ValueId id);
  bool sums_columns(const std::set<int>& contracted) const;
  bool pull(ir::ValueId reader, const Dims& reader_dims);
  bool pull_value(ir::ValueId value, const Dims& dims);
  /// How to treat a value that a member reads at `dims`.
  enum class Pull : std::uint8_t { leave, look_into, stop };
  Pull pull_one(ir::ValueId value, const Dims& dims);
  int cost_in_place(ir::ValueId value) const;
  bool pull_product(ir::ValueId value, const Dims& dims);
  std::optional<AttentionGroup> finish();
  std::optional<ir::ValueId> weights() const;
  bool sums_weights();
  bool has_gradient() const;
  int choose_row() const;

  const AttentionSubject& s_;
  const ir::Graph& graph_;
  OuterReductions sums_taken_;
  bool decode_, one_row_ = false;
  AttentionNotes& notes_;
  std::vector<ir::ValueId> noted_;  ///< nodes that have entries in notes_
  std::vector<ir::ValueId>
      tainting_;  ///< consumers, and rejected readers of members: values that depend on them are tainted
  Region region_;
  std::map<ir::ValueId, Dims> seeds_;
  std::set<ir::ValueId> inline_;
  std::set<std::pair<ir::ValueId, Dims>> pulled_;  ///< visited values
  std::int64_t arithmetic_ = 0;                    ///< of members, consumers and sums
  /// Domain dims that can be the rows; for a single row, the dim of size 1 that represents it.
  std::set<int> rows_;
  std::optional<std::set<int>> summed_;  ///< dims that contractions over rows sum over
  std::vector<ir::ValueId> consumers_, sums_;
  std::set<int> accumulated_;  ///< dims that sums_ go over
  std::vector<Rejection> rejections_;
  std::optional<ir::ValueId> no_softmax_;
  bool grew_ = false, failed_ = false;
};

}  // namespace lathe
