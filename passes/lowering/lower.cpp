#include "passes/lowering/lower.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/kernel/printer.h"
#include "ir/ops/collectives.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/visible.h"
#include "ir/tensor/constants.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/verifier.h"
#include "passes/lowering/in_place.h"
#include "passes/lowering/pool/kernel_pool.h"
#include "passes/lowering/region_kernels.h"
#include "passes/lowering/traffic.h"
#include "passes/lowering/verify/verify_placement.h"
#include "passes/program/received_elements.h"
#include "passes/program/require_one_process.h"

namespace lathe {

using namespace ir;

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, FusionPlan plan, const Machine& machine, const LowerOptions& options, KernelPool& pool)
      : graph_(graph),
        plan_(std::move(plan)),
        machine_(machine),
        pool_(pool),
        tuning_(options.tuning),
        buffer_of_(graph, -1) {
    program_.name = graph.name;
    program_.checks = graph.checks;
    program_.regions = static_cast<int>(plan_.regions.size());
  }

  Program run() {
    place_arguments();
    place_outputs();
    place_updates();
    place_temporaries();
    verify_placement(graph_, plan_, [this](ValueId id) { return buffer(id); }, copies_);
    const LoweringContext context{
        .graph = graph_,
        .plan = plan_,
        .machine = machine_.info,
        .buffer_of = [this](ValueId id) { return buffer(id); },
        .workspace =
            [this](DType dtype, const Dim& elements, std::string name) {
              return workspace(ProgramBuffer::Kind::temporary, dtype, elements, std::move(name));
            },
        .scratch =
            [this](DType dtype, const Dim& elements, std::string name) {
              return workspace(ProgramBuffer::Kind::scratch, dtype, elements, std::move(name));
            },
        .tuning = tuning_ ? &*tuning_ : nullptr};
    for (int r = 0; r < program_.regions; ++r) lower_region(context, r);
    int copies = 0;
    for (const auto& [state, value] : copies_) copy_back(state, value, copies);
    return std::move(program_);
  }

 private:
  const Placement& placement(ValueId id) const { return plan_.placement[id]; }

  int buffer(ValueId id) const {
    const int found = buffer_of_[placement(id).base];
    LATHE_ASSERT(found >= 0);
    return found;
  }

  int add_buffer(ProgramBuffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  int temporary(DType dtype, const Dim& elements, std::string name, const Location& loc) {
    return add_buffer({.kind = ProgramBuffer::Kind::temporary,
                       .name = std::move(name),
                       .dtype = dtype,
                       .elements = elements,
                       .data = {},
                       .loc = loc});
  }

  int workspace(ProgramBuffer::Kind kind, DType dtype, const Dim& elements, std::string name) {
    return add_buffer({.kind = kind,
                       .name = std::move(name),
                       .dtype = dtype,
                       .elements = elements,
                       .data = {},
                       .loc = {},
                       .has_room = true});
  }

  LaunchOp launch_op(ValueId id) const {
    const Node& node = graph_[id];
    return {id, node.op, visible(node.name), node.loc};
  }
  std::string describe(ValueId id) const { return launch_op(id).to_string(); }

  void place_arguments() {
    for (const ValueId id : graph_.arguments()) {
      const Node& node = graph_[id];
      const bool input = node.op == &ops::input;
      const int b = add_buffer({.kind = input ? ProgramBuffer::Kind::input : ProgramBuffer::Kind::state,
                                .name = visible(node.name),
                                .dtype = node.type.dtype,
                                .elements = node.type.shape.numel(),
                                .data = {},
                                .loc = node.loc});
      buffer_of_[id] = b;
      (input ? program_.inputs : program_.states)
          .push_back({node.name, node.type.dtype, node.type.shape, b, node.op == &ops::parameter});
    }
  }

  void place_outputs() {
    for (const Output& output : graph_.outputs) {
      const TensorType& type = graph_[output.value].type;
      const int b = add_buffer({.kind = ProgramBuffer::Kind::output,
                                .name = visible(output.name),
                                .dtype = type.dtype,
                                .elements = type.shape.numel(),
                                .data = {},
                                .loc = graph_[output.value].loc});
      buffer_of_[output.value] = b;
      program_.outputs.push_back({output.name, type.dtype, type.shape, b});
    }
  }

  Program::Slot& slot_of(int state) {
    return *std::find_if(program_.states.begin(), program_.states.end(),
                         [&](const Program::Slot& slot) { return slot.buffer == state; });
  }

  /// Lets new values of states overwrite the old ones if these are dead by then. Otherwise they are copied at the
  /// end.
  void place_updates() {
    std::vector<Update> in_place;
    for (std::size_t u = 0; u < graph_.updates.size(); ++u) {
      const Update& update = graph_.updates[u];
      const int state = buffer_of_[update.state];
      slot_of(state).is_updated = true;
      if (plan_.last_reader_first[u] && may_overwrite(graph_, plan_, update.value, update.state)) {
        buffer_of_[update.value] = state;
        in_place.push_back(update);
      } else {
        copies_.emplace_back(update.state, update.value);
        copied_.insert(update.value);
      }
    }
    place_gathered_parts(graph_, in_place, [this](ValueId id) { return is_temporary(id); }, plan_);
  }

  /// Whether a value has its own memory in the arena, or shares that of a value that it overwrites.
  bool is_temporary(ValueId id) const {
    return !is_alias(graph_[id]) && graph_[id].op != &ops::constant && buffer_of_[id] < 0 && plan_.is_stored(id) &&
           plan_.region(id) >= 0 && placement(id).base == id && !copied_.contains(id);
  }

  /// Assigns buffers. A value overwrites a dead one if its region allows it.
  void place_temporaries() {
    const auto over = overwritten_values(graph_, plan_, [this](ValueId id) { return is_temporary(id); });
    NodeMap<ValueId> first(graph_);
    for (const ValueId id : all_values(graph_)) {
      first[id] = id;
      while (over[first[id]].valid()) first[id] = over[first[id]];
    }
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      if (is_alias(node) || buffer_of_[id] >= 0 || first[id] != id) continue;
      if (node.op == &ops::constant && !is_splat(node)) {
        buffer_of_[id] = add_buffer({.kind = ProgramBuffer::Kind::constant,
                                     .name = describe(id),
                                     .dtype = node.type.dtype,
                                     .elements = node.type.shape.numel(),
                                     .data = constant_values(node),
                                     .loc = node.loc});
      } else if (plan_.is_stored(id) && plan_.region(id) >= 0 && placement(id).base == id) {
        buffer_of_[id] = temporary(node.type.dtype, node.type.shape.numel(), describe(id), node.loc);
      } else if (plan_.is_inlined(id) && node.op == &ops::scatter_add) {
        buffer_of_[id] = temporary(i64, scatter_positions_size(graph_, id), describe(id) + " positions", node.loc);
      }
    }
    for (const ValueId id : all_values(graph_))
      if (first[id] != id) buffer_of_[id] = buffer_of_[first[id]];
  }

  void lower_region(const LoweringContext& context, int number) {
    const Region& region = plan_.regions[number];
    if (region.kind() == RegionKind::collective) return add_collective(region.members[0], number);
    const RegionKey key = region_key(context, region);
    auto launches = pool_.regions.find(key, [this](const ProgramBuffer& buffer) { return add_buffer(buffer); });
    if (!launches) {
      const std::size_t first_workspace = program_.buffers.size();
      launches = new_launches(context, region);
      pool_.regions.keep(key, *launches, program_.buffers, first_workspace);
    }
    verify_stores(region, *launches);
    std::vector<LaunchOp> ops;
    for (const ValueId id : region.members) ops.push_back(launch_op(id));
    for (Launch& launch : *launches) {
      launch.info.kind = region.kind();
      launch.info.region = number;
      launch.info.ops = ops;
      if (launch.part_of >= 0)
        launch.part_of = region.members[0].index;  // pooled launches have the node of another
                                                   // region
      launch.loc = graph_[region.members.back()].loc;
      launch.kernel = kernel_of(launch.kernel, [&] { return notes_of(launch, region); });
      program_.launches.push_back(std::move(launch));
    }
  }

  /// Throws InternalError unless the schedule stores all values that the plan wants in memory.
  void verify_stores(const Region& region, std::span<const Launch> launches) const {
    std::set<int> stored;
    for (const Launch& launch : launches)
      for (std::size_t p = 0; p < launch.buffers.size(); ++p)
        if (pool_[launch.kernel].buffers[p].access != kernel::Access::read) stored.insert(launch.buffers[p]);
    for (const ValueId id : region.members)
      if (plan_.is_stored(placement(id).base) && !stored.contains(buffer(id)))
        throw InternalError(
            fmt::format("lowering of @{}: {} at {} must be stored, but no kernel of its region stores it",
                        graph_.name, describe(id), graph_[id].loc.to_string()));
  }

  std::vector<KernelContext::Built> region_kernels(const LoweringContext& context, const Region& region) const {
    const auto schedule = machine_.schedules.find(region.kind());
    if (schedule == machine_.schedules.end())
      throw InternalError(fmt::format("lowering of @{}: the machine has no schedule for {} regions", graph_.name,
                                      name(region.kind())));
    std::vector<KernelContext::Built> built;
    if (machine_.before) built = machine_.before(context, region);
    for (KernelContext::Built& each : schedule->second(context, region)) built.push_back(std::move(each));
    return built;
  }

  /// Builds the kernels of a region with its chosen tuning candidate; with TuningChoices::all, with every candidate.
  std::vector<KernelContext::Built> tuned_region_kernels(LoweringContext context, const Region& region) {
    const std::size_t first_workspace = program_.buffers.size();
    std::vector<KernelContext::Built> built = region_kernels(context, region);
    if (!tuning_ || built.back().candidates.size() < 2) return built;
    const auto candidates = std::make_shared<TuningCandidates>();
    candidates->names = built.back().candidates;
    for (const KernelContext::Built& each : built) candidates->problem += kernel::canonical_text(each.kernel);
    const int count = static_cast<int>(candidates->names.size());
    const auto found = tuning_->chosen.find(candidates->problem);
    const int chosen = found == tuning_->chosen.end() || found->second >= count ? 0 : found->second;
    if (chosen > 0 && !tuning_->all) {
      built.clear();
      program_.buffers.erase(program_.buffers.begin() + static_cast<std::ptrdiff_t>(first_workspace),
                             program_.buffers.end());
    }
    for (int c = 1; c < count; ++c) {
      if (!tuning_->all && c != chosen) continue;
      context.candidate = c;
      for (KernelContext::Built& each : region_kernels(context, region)) built.push_back(std::move(each));
    }
    for (KernelContext::Built& each : built) each.launch.tuning = candidates;
    return built;
  }

  /// Lowers a region. Kernels are identified by their index in the pool; ops are not set.
  std::vector<Launch> new_launches(const LoweringContext& context, const Region& region) {
    std::vector<Launch> launches;
    for (auto& [kernel, launch, touched, candidates] : tuned_region_kernels(context, region)) {
      launch.bytes = launch_bytes(kernel, launch, program_.buffers, touched);
      launch.kernel = pool_.add(std::move(kernel));
      launches.push_back(std::move(launch));
    }
    return launches;
  }

  std::vector<std::string> notes_of(const Launch& launch, const Region& region) const {
    std::vector<std::string> notes;
    for (const MissedPath& missed : launch.info.missed) notes.push_back(missed.to_string());
    for (const ValueId id : region.members)
      notes.push_back(fmt::format("{} {}", describe(id), graph_[id].loc.to_string()));
    return notes;
  }

  /// Returns the program index of a pooled kernel. The first launch that uses it provides its notes.
  template <class Notes>
  int kernel_of(int pooled, Notes notes) {
    const auto [known, is_new] = kernel_of_.try_emplace(pooled, static_cast<int>(program_.kernels.size()));
    if (is_new) {
      kernel::Kernel& kernel = program_.kernels.emplace_back(pool_[pooled]);
      kernel.name = fmt::format("k{}_{}", known->second, kernel.name);
      for (std::string& note : notes()) kernel.notes.push_back(std::move(note));
    }
    return known->second;
  }

  /// Adds a collective. order_collectives() later determines when it may start and when it must be done.
  void add_collective(ValueId id, int region) {
    const Node& node = graph_[id];
    const ValueId operand = node.operands[0];
    const Placement& placed = placement(operand);
    LATHE_ASSERT(plan_.is_stored(placed.base) && (placed.offset.is(0) || placed.base == id));
    const auto now = static_cast<int>(program_.launches.size());
    auto [axis, ranks] = axis_of(node);
    const CollectiveKind kind = collective_kind(*node.op);
    Collective collective{.kind = kind,
                          .axis = std::move(axis),
                          .ranks = ranks,
                          .offset = kind == CollectiveKind::send_recv ? places_on(node) : 0,
                          .parts = {},
                          .start = now,
                          .done = now};
    Collective::Part& part = collective.parts.emplace_back();
    part.from = buffer(operand);
    part.to = buffer(id);
    part.elements = graph_[operand].type.shape.numel();
    part.op = launch_op(id);
    part.loc = node.loc;
    const bool reduces = collective.kind == Collective::Kind::all_reduce;
    if (reduces || collective.kind == Collective::Kind::reduce_scatter) {
      const DType dtype = node.type.dtype;
      part.window = machine_.folded_bytes / static_cast<std::int64_t>(size_in_bytes(dtype));
      const auto space = [&](const Dim& elements, std::string_view what) {
        return workspace(ProgramBuffer::Kind::temporary, dtype, elements,
                         fmt::format("{} {}", part.op.to_string(), what));
      };
      part.received = space(received_elements(part, collective.ranks), "pieces");
      if (reduces) part.folded = space(part.elements.unnamed() + Dim(collective.ranks - 1), "piece");
      auto [kernel, launch, touched, candidates] =
          machine_.fold(machine_.info, dtype, fold_of(node), part.received, reduces ? part.folded : part.to,
                        part.elements.unnamed(), collective.ranks);
      launch.info.kind = RegionKind::collective;
      launch.info.region = region;
      launch.info.ops = {part.op};
      launch.loc = node.loc;
      launch.kernel = kernel_of(pool_.add(std::move(kernel)), [] { return std::vector<std::string>(); });
      part.fold = std::move(launch);
    }
    program_.collectives.push_back(std::move(collective));
  }

  void copy_back(ValueId state, ValueId value, int& copies) {
    auto [kernel, launch, touched, candidates] = machine_.copy(machine_.info, graph_[state].type.dtype, buffer(value),
                                                               buffer(state), graph_[state].type.shape.numel());
    launch.bytes = launch_bytes(kernel, launch, program_.buffers, touched);
    launch.info.region = program_.regions + copies++;
    launch.info.ops = {{.name = visible(graph_[state].name), .loc = graph_[value].loc}};
    launch.loc = graph_[value].loc;
    launch.kernel = kernel_of(pool_.add(std::move(kernel)), [] { return std::vector<std::string>(); });
    program_.launches.push_back(std::move(launch));
  }

  const Graph& graph_;
  FusionPlan plan_;
  const Machine& machine_;
  KernelPool& pool_;
  std::optional<TuningChoices> tuning_;
  NodeMap<int> buffer_of_;                           // by node
  std::vector<std::pair<ValueId, ValueId>> copies_;  // (state, value copied into it)
  std::set<ValueId> copied_;                         // the values in copies_
  std::unordered_map<int, int> kernel_of_;           // pool index to program index
  Program program_;
};

}  // namespace

std::optional<AttentionCostModel> attention_costs(const Machine& machine, const LowerOptions& options) {
  return options.attention == AttentionFusion::automatic ? machine.fusion.attention_costs : std::nullopt;
}

FusionPlan fuse_regions(const Graph& prepared, const Machine& machine, const LowerOptions& options,
                        const NodeMap<bool>& recomputed) {
  if (!machine.fold) require_one_process(prepared);
  FusionOptions fusion = machine.fusion;
  fusion.attention = options.attention != AttentionFusion::off;
  fusion.attention_costs = attention_costs(machine, options);
  fusion.recomputed = recomputed;
  return plan_fusion(prepared, fusion);
}

Program make_kernels(const Graph& graph, const FusionPlan& regions, const Machine& machine,
                     const LowerOptions& options, KernelPool& pool) {
  return Lowering(graph, regions, machine, options, pool).run();
}

}  // namespace lathe
