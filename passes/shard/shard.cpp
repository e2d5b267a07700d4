#include "passes/shard/shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/ops/collectives.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "passes/shard/local_ops.h"
#include "passes/shard/plan/form_plan.h"
#include "passes/shard/plan/gather_plan.h"
#include "passes/shard/ring/ring_attention.h"
#include "passes/transforms/dce.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// The form of a value along each axis of a mesh, two bits per axis.
using Forms = std::uint64_t;

Form form_along(Forms forms, int axis) { return static_cast<Form>(forms >> (2 * axis) & 3u); }
Forms with_form(Forms forms, int axis, Form form) {
  return (forms & ~(Forms{3} << (2 * axis))) | Forms(form) << (2 * axis);
}

class LocalGraph {
 public:
  LocalGraph(const Graph& graph, const SplitPlan& splits, std::vector<ShardPlan> parts, bool gathers_again)
      : graph_(graph),
        splits_(splits),
        mesh_(splits.mesh()),
        builder_(std::make_shared<GraphBuilder>(graph.name)),
        parts_(std::move(parts)) {
    for (int a = 0; a < mesh_.axis_count(); ++a) partials_.push_back(plan_partials(graph, splits, parts_[at(a)], a));
    if (gathers_again) gathered_again_ = plan_second_gathers(graph, splits, parts_, partials_);
  }

  Sharded run() {
    add_checks();
    for (const ValueId id : all_values(graph_)) add(id);
    for (const Output& output : graph_.outputs) {
      const Forms forms = forms_by([&](int a) { return form_given(parts_[at(a)], partials_[at(a)], output.value); });
      builder_->output(output.name, converted(output.value, forms, {fmt::format("the output {}", output.name)}));
      result_.results[output.name] = placement(output.value, forms);
    }
    for (const Update& update : graph_.updates) {
      const Node& state = graph_[update.state];
      const Forms forms = made(update.state);
      const Value updated =
          converted(update.value, forms, {fmt::format("the {} {}", state.op->name.value, state.name)});
      builder_->update(values_.at({update.state.index, forms, false}), updated);
      result_.results[state.name] = placement(update.state, forms);
    }
    for (const ShardPlan& plan : parts_)
      for (const ValueId id : plan.kept_whole) result_.kept_whole.push_back(graph_[id].name);
    note_unknowns();
    result_.mesh = mesh_;
    result_.graph = builder_->finish();
    return std::move(result_);
  }

 private:
  using Key = std::tuple<std::int32_t, Forms, bool>;
  enum class Step { none, slice, scatter, reduce, gather };  ///< in order of execution
  /// The reader for which a value is converted to a form.
  struct Reader {
    std::string what;
    bool in_gradient = false;
  };

  static std::size_t at(int axis) { return static_cast<std::size_t>(axis); }
  const FormPlan::Value& planned(ValueId id, int axis) const { return partials_[at(axis)][id]; }

  template <class F>
  Forms forms_by(F form) const {
    Forms forms = 0;
    for (int a = 0; a < mesh_.axis_count(); ++a) forms = with_form(forms, a, form(a));
    return forms;
  }
  Forms made(ValueId id) const {
    return forms_by([&](int a) { return planned(id, a).made; });
  }
  Placement placement(ValueId id, Forms forms) const {
    std::vector<bool> axes;
    for (int a = 0; a < mesh_.axis_count(); ++a) axes.push_back(form_along(forms, a) == Form::part);
    return placement_of_parts(splits_, parts_, id, axes);
  }

  void add(ValueId id) {
    const Node& node = graph_[id];
    std::vector<Value> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand_of(id, operand));
    const Forms forms = made(id);
    const Placement lies = placement(id, forms);
    const Value value = splits_.cut(id)
                            ? add_cut(id, operands[0])
                            : add_local(*builder_, graph_, splits_, id, operands, part_shape(splits_, id, lies));
    values_.insert_or_assign({id.index, forms, false}, value);
    if (!node.name.empty() && !node.op->as<Argument>()) builder_->set_name(value, node.name);
    if (node.op->as<Argument>()) result_.arguments[node.name] = lies;
  }

  /// Gathers a sequence that is split over processes, or takes the shard of one that each process has whole or as a
  /// partial sum.
  Value add_cut(ValueId id, Value value) {
    const Cut& cut = *splits_.cut(id);
    const bool gathers = cut.kind == Cut::Kind::gather;
    const ValueId operand = graph_[id].operands[0];
    const Placement split = splits_.placement(gathers ? operand : id);
    std::vector<int> axes = splits_.axes_of_cut(id);
    if (gathers) std::reverse(axes.begin(), axes.end());
    const GraphBuilder::At here(*builder_, graph_[id].loc);
    for (const int axis : axes) {
      const MeshAxis& along = mesh_[axis];
      const Dim blocks = held_blocks(std::get<SplitDim>(split[at(axis)]), split, mesh_);
      const Form form = form_read(graph_, parts_[at(axis)], partials_[at(axis)], id, operand);
      const Value before = value;
      if (gathers)
        value = all_gather(value, along, cut.dim, blocks);
      else if (form == Form::partial)
        value = reduce_scatter(value, along, cut.dim, blocks);
      else
        value = take_part(value, cut.dim, blocks, along);
      if (gathers) note(id, value, value.shape(), axis, cut.why);
      if (!gathers && form == Form::partial)
        note(id, value, before.shape(), axis, birth_of(operand, axis) + ", and keeps its part");
    }
    return value;
  }

  /// Returns an operand in the forms that the op needs.
  Value operand_of(ValueId id, ValueId operand) {
    const Node& node = graph_[id];
    const Forms forms =
        forms_by([&](int a) { return form_read(graph_, parts_[at(a)], partials_[at(a)], id, operand); });
    Value value = converted(
        operand, forms, {fmt::format("{} at {}", node.op->name.value, node.loc.to_string()), node.loc.gradient()});
    const GraphBuilder::At here(*builder_, node.loc);
    for (int a = 0; a < mesh_.axis_count(); ++a) {
      const FormPlan::Value& result = planned(id, a);
      if (result.made == Form::partial && !result.born && form_along(forms, a) == Form::whole && adds_once(node))
        value = ir::where(ir::eq(mesh_index(*builder_, mesh_[a]), 0.0), value, ir::number_like(value, 0));
    }
    return value;
  }

  /// Returns the last step along an axis that converts a value from one form to another. Partial sums that are needed
  /// both as shards and whole are scattered, then gathered; partial maxima and minima are combined, then sliced.
  Step last_step(ValueId id, int axis, Form from, Form to) const {
    if (from == to) return Step::none;
    if (from == Form::whole) return Step::slice;
    const bool scatters = from == Form::partial && planned(id, axis).combine == Combine::sum;
    if (to == Form::part) return scatters ? Step::scatter : Step::slice;
    return from == Form::part || (scatters && planned(id, axis).as_part) ? Step::gather : Step::reduce;
  }

  /// Returns the value in other forms. Each step is done once for all readers, except that a value gathered in the
  /// forward pass may be gathered again for the gradient (passes/shard/plan/gather_plan.h). Steps that make the value
  /// smaller come first.
  Value converted(ValueId id, Forms to, const Reader& reader) {
    const Forms from = made(id);
    Step last = Step::none;
    int axis = -1;
    for (int a = 0; a < mesh_.axis_count(); ++a)
      if (const Step step = last_step(id, a, form_along(from, a), form_along(to, a)); step > last) {
        last = step;
        axis = a;
      }
    const bool again =
        last == Step::gather && reader.in_gradient && gathered_again_ && (*gathered_again_)[id] && is_held(id, axis);
    if (const auto found = values_.find({id.index, to, again}); found != values_.end()) return found->second;
    LATHE_ASSERT(axis >= 0);
    const Form before = last == Step::slice ? Form::whole : last == Step::gather ? Form::part : Form::partial;
    const Forms left = with_form(to, axis, before);
    const Value value = take_step(last, id, axis, left, converted(id, left, reader), again, reader);
    values_.insert_or_assign({id.index, to, again}, value);
    return value;
  }

  /// Whether the value is computed from shards.
  bool is_held(ValueId id, int axis) const { return planned(id, axis).made == Form::part; }

  Value take_step(Step step, ValueId id, int axis, Forms before, const Value& value, bool again,
                  const Reader& reader) {
    const GraphBuilder::At here(*builder_, graph_[id].loc);
    const MeshAxis& along = mesh_[axis];
    if (step == Step::reduce) {
      const Value all = all_reduce(value, along, name(*planned(id, axis).combine));
      note(id, all, all.shape(), axis, birth_of(id, axis));
      return all;
    }
    const SplitDim& part = parts_[at(axis)][id];
    const Dim blocks = held_blocks(part, placement(id, before), mesh_);
    if (step == Step::slice) return take_part(value, part.dim, blocks, along);
    if (step == Step::scatter) {
      const Value mine = reduce_scatter(value, along, part.dim, blocks);
      note(id, mine, value.shape(), axis, birth_of(id, axis) + ", and keeps its part");
      return mine;
    }
    const Value whole = all_gather(value, along, part.dim, blocks, again);
    note(id, whole, whole.shape(), axis,
         fmt::format("each process has its part, and {} takes all of it{}", reader.what,
                     again ? ", which is not kept from the forward pass" : ""));
    return whole;
  }

  /// Describes where the partial values of a value originate: the first such node.
  std::string birth_of(ValueId id, int axis) const {
    const Combine combine = *planned(id, axis).combine;
    while (!planned(id, axis).born)
      for (const ValueId operand : graph_[id].operands)
        if (planned(operand, axis).made == Form::partial) {
          id = operand;
          break;
        }
    return fmt::format("{} at {} folds a dim that is split over {}: each process has a partial {}",
                       graph_[id].op->name.value, graph_[id].loc.to_string(), mesh_[axis].name, name(combine));
  }

  void note(ValueId id, const Value& after, const Shape& moved, int axis, std::string reason) {
    const Node& node = graph_[id];
    result_.collectives.push_back(
        {collective_kind(*after.node().op), mesh_[axis],
         node.name.empty() ? after.type().to_string() : fmt::format("{}: {}", node.name, after.type().to_string()),
         moved.numel(), static_cast<std::int64_t>(size_in_bytes(after.dtype())), node.loc, std::move(reason)});
  }

  void note_unknowns() {
    for (const ValueId id : all_values(graph_))
      for (const Dim& size : graph_[id].type.shape)
        for (const std::string& name : size.unknowns()) {
          const Dim::Term part = splits_.whole(Dim(name)).terms().front();
          result_.unknowns.insert({name, {part.monomial.front().first, part.coefficient}});
        }
  }

  void add_checks() {
    for (DimCheck check : graph_.checks) {
      check.left = splits_.whole(check.left);
      check.right = splits_.whole(check.right);
      builder_->add_checks({&check, 1});
    }
  }

  const Graph& graph_;
  const SplitPlan& splits_;
  const Mesh& mesh_;
  std::shared_ptr<GraphBuilder> builder_;
  std::vector<ShardPlan> parts_;    ///< by axis
  std::vector<FormPlan> partials_;  ///< by axis
  std::optional<NodeMap<bool>> gathered_again_;
  std::map<Key, Value> values_;  ///< by node, forms, and whether gathered again
  Sharded result_;
};

/// Returns which arguments are sharded along an axis. If parameters are, their states are too.
PartKinds kinds_along(const Mesh& mesh, int axis, const ShardOptions& options) {
  if (mesh[axis].ranks == 1) return {};
  const bool parameters = mesh[axis].name == options.parameters;
  return {parameters || mesh[axis].name == options.states, parameters};
}

}  // namespace

Collective described(const Graph& graph, const Node& collective) {
  const bool scatters = collective.op == &ops::reduce_scatter;
  const Shape& most = scatters ? graph[collective.operands[0]].type.shape : collective.type.shape;
  return {.kind = collective_kind(*collective.op),
          .axis = axis_of(collective),
          .value = collective.type.to_string(),
          .elements = most.numel(),
          .element_bytes = static_cast<std::int64_t>(size_in_bytes(collective.type.dtype)),
          .loc = collective.loc,
          .reason = {}};
}

namespace {

/// Returns the collectives of a graph with rings, in its order: the previous ones, and the sends of rings.
std::vector<Collective> collectives_with_rings(const Graph& graph, std::vector<Collective> before) {
  std::vector<Collective> now;
  for (const Node& node : graph.nodes) {
    if (!is_collective(*node.op) || node.op == &ops::mesh_index) continue;
    Collective collective = described(graph, node);
    const auto same = std::ranges::find_if(before, [&](const Collective& each) {
      return each.kind == collective.kind && each.axis == collective.axis && each.elements == collective.elements &&
             each.element_bytes == collective.element_bytes && each.loc.to_string() == collective.loc.to_string();
    });
    if (same != before.end()) {
      collective = std::move(*same);
      before.erase(same);
    } else if (collective.kind == CollectiveKind::send_recv) {
      collective.reason = reason_of_send(node);
    }
    now.push_back(std::move(collective));
  }
  return now;
}

void make_rings(Sharded& sharded) {
  RingGraph ring = ring_attention(sharded.graph);
  sharded.gathered = std::move(ring.gathered);
  sharded.rings = ring.rings;
  if (ring.rings == 0) return;
  sharded.graph = std::move(ring.graph);
  sharded.collectives = collectives_with_rings(sharded.graph, std::move(sharded.collectives));
}

}  // namespace

Sharded shard(const Graph& graph, const Mesh& mesh, const std::vector<Split>& splits, const ShardOptions& options) {
  for (const std::string& axis : {options.states, options.parameters})
    if (!axis.empty()) (void)mesh.find(axis);
  const CutGraph cut = cut_sequences(primitives_of(graph), splits);
  const Graph& primitives = cut.graph;
  const FactoredGraph factored = factor_dims(primitives, cut.cuts);
  const SplitPlan plan(cut, factored, mesh, splits);
  std::vector<ShardPlan> parts;
  for (int a = 0; a < mesh.axis_count(); ++a)
    parts.push_back(plan_parts(primitives, plan, a, kinds_along(mesh, a, options), parts));
  Sharded sharded =
      LocalGraph(primitives, plan, std::move(parts), options.second_gather != SecondGather::never).run();
  sharded.graph = dce(std::move(sharded.graph));
  if (options.ring == RingWay::always) make_rings(sharded);
  return sharded;
}

}  // namespace lathe::shard
