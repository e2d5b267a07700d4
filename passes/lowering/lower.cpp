#include "passes/lowering/lower.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/kernel/intrinsics/split_bf16.h"
#include "ir/kernel/printer.h"
#include "ir/ops/collectives.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/visible.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/verifier.h"
#include "passes/lowering/add_body.h"
#include "passes/lowering/place_buffers.h"
#include "passes/lowering/pool/kernel_pool.h"
#include "passes/lowering/region_kernels.h"
#include "passes/lowering/traffic.h"
#include "passes/lowering/verify/verify_placement.h"
#include "passes/program/kept_launches.h"
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
        options_(options),
        tuning_(options.tuning),
        buffers_(graph, plan_, program_, machine.overwritten_bytes) {
    program_.name = graph.name;
    program_.checks = graph.checks;
    program_.regions = static_cast<int>(plan_.regions.size());
    next_region_ = program_.regions;
  }

  Program run() {
    buffers_.place_all();
    verify_placement(graph_, plan_, [this](ValueId id) { return buffer(id); }, buffers_.copies());
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
        .kept =
            [this](DType dtype, const Dim& elements, std::string name) {
              return workspace(ProgramBuffer::Kind::kept, dtype, elements, std::move(name));
            },
        .is_fixed = [this](ValueId id) { return is_fixed(id); },
        .keeps = [this](ValueId id) { return keeps(id); },
        .tuning = tuning_ ? &*tuning_ : nullptr};
    for (int r = 0; r < static_cast<int>(plan_.regions.size()); ++r) lower_region(context, r);
    for (const auto& [state, value] : buffers_.copies()) copy_back(state, value);
    gather_kept_launches(program_);
    return std::move(program_);
  }

 private:
  const Placement& placement(ValueId id) const { return plan_.placement[id]; }

  int buffer(ValueId id) const { return buffers_.buffer(id); }
  int workspace(ProgramBuffer::Kind kind, DType dtype, const Dim& elements, std::string name) {
    return buffers_.add_workspace(kind, dtype, elements, std::move(name));
  }

  bool is_fixed(ValueId id) const {
    const auto updates = [&](const Update& update) { return update.state == id; };
    return graph_[id].op == &ops::parameter && std::ranges::none_of(graph_.updates, updates);
  }

  /// Decides for each fixed parameter, at the first request, whether packed copies of it are kept.
  bool keeps(ValueId id) {
    const Node& node = graph_[id];
    const std::optional<std::int64_t> elements = node.type.shape.numel().value();
    if (!is_fixed(id) || !elements || *elements < options_.least_packed || options_.memory ||
        !std::holds_alternative<CpuInfo>(machine_.info))
      return false;
    const auto [decision, is_new] = kept_.try_emplace(id, false);
    if (!is_new) return decision->second;
    const std::int64_t bytes = *elements * bytes_of_copies(node.type.dtype);
    decision->second = bytes <= options_.packed_bytes - kept_bytes_;
    if (decision->second) kept_bytes_ += bytes;
    return decision->second;
  }

  /// Returns the bytes of all packed copies of an element: f32 may be packed twice, for few rows and as split bf16.
  std::int64_t bytes_of_copies(DType dtype) const {
    const auto bytes = static_cast<std::int64_t>(size_in_bytes(dtype));
    const bool splits = dtype == f32 && std::get<CpuInfo>(machine_.info).tiles;
    return splits ? bytes + kernel::bf16_terms * static_cast<std::int64_t>(size_in_bytes(bf16)) : bytes;
  }

  std::string describe(ValueId id) const { return launch_op(graph_, id).to_string(); }

  void lower_region(const LoweringContext& context, int number) {
    const Region& region = plan_.regions[number];
    if (region.kind() == RegionKind::collective) return add_collective(region.members[0], number);
    if (region.kind() == RegionKind::loop) return add_loop(region);
    const RegionKey key = region_key(context, region);
    auto launches = pool_.regions.find(key, [this](const ProgramBuffer& buffer) { return buffers_.add(buffer); });
    if (!launches) {
      const std::size_t first_workspace = program_.buffers.size();
      launches = new_launches(context, region);
      pool_.regions.keep(key, *launches, program_.buffers, first_workspace);
    }
    verify_stores(region, *launches);
    std::vector<LaunchOp> ops;
    for (const ValueId id : region.members) ops.push_back(launch_op(graph_, id));
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
    for (const KernelContext::Built& each : built)
      if (each.kernel_from == 0) candidates->problem += kernel::canonical_text(each.kernel);
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
    for (auto& [kernel, launch, touched, candidates, kernel_from] : tuned_region_kernels(context, region)) {
      launch.kernel = kernel_from > 0 ? launches.end()[-kernel_from].kernel : pool_.add(std::move(kernel));
      launch.bytes = launch_bytes(pool_[launch.kernel], launch, program_.buffers, touched);
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
    part.op = launch_op(graph_, id);
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
      auto [kernel, launch, touched, candidates, kernel_from] =
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

  void copy_back(ValueId state, ValueId value) {
    copy(buffer(value), buffer(state), graph_[state].type, visible(graph_[state].name), graph_[value].loc);
  }

  void copy(int from, int to, const TensorType& type, std::string name, const Location& loc) {
    auto [kernel, launch, touched, candidates, kernel_from] =
        machine_.copy(machine_.info, type.dtype, from, to, type.shape.numel());
    launch.bytes = launch_bytes(kernel, launch, program_.buffers, touched);
    launch.info.region = next_region_++;
    launch.info.ops = {{.name = std::move(name), .loc = loc}};
    launch.loc = loc;
    launch.kernel = kernel_of(pool_.add(std::move(kernel)), [] { return std::vector<std::string>(); });
    program_.launches.push_back(std::move(launch));
  }

  /// Adds the launches of a loop's body. The carries are in the buffers of their last values.
  void add_loop(const Region& region) {
    const Node& node = graph_[region.members[0]];
    const Graph& body = loop_body(node).graph();
    LoopPlaces places{.trips = loop_trips(node), .reverse = loop_reverse(node), .name = body.name, .loc = node.loc};
    std::vector<int> results(static_cast<std::size_t>(result_count(node)), -1);
    for (const ValueId id : region.members) results[static_cast<std::size_t>(loop_result(graph_[id]))] = buffer(id);
    const auto carries = static_cast<std::size_t>(carry_count(node));
    const std::vector<ValueId> arguments = body.arguments();
    for (std::size_t c = 0; c < carries; ++c) {
      const Node& carry = body[arguments[c]];
      if (results[c] < 0)
        results[c] = buffers_.add({.name = visible(carry.name),
                                   .dtype = carry.type.dtype,
                                   .elements = carry.type.shape.numel(),
                                   .data = {},
                                   .loc = carry.loc});
      copy(dense_buffer(node.operands[static_cast<int>(c)]), results[c], carry.type, visible(carry.name), carry.loc);
    }
    places.carries.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carries));
    places.outputs.assign(results.begin() + static_cast<std::ptrdiff_t>(carries), results.end());
    for (std::size_t i = carries; i < arguments.size(); ++i)
      places.inputs.push_back(dense_buffer(node.operands[static_cast<int>(i)]));
    places.sequences = sequence_count(node);
    Program inner = Lowering(body, fuse_regions(body, machine_, options_), machine_, options_, pool_).run();
    next_region_ = add_body(program_, std::move(inner), places, next_region_);
  }

  /// Returns the buffer of an operand that store_loop_operands() has given memory of its own.
  int dense_buffer(ValueId operand) const {
    const Placement& placed = placement(operand);
    LATHE_ASSERT(placed.offset.is(0) && (graph_[placed.base].op == &ops::constant || plan_.is_stored(placed.base)));
    return buffer(operand);
  }

  const Graph& graph_;
  FusionPlan plan_;
  const Machine& machine_;
  KernelPool& pool_;
  const LowerOptions& options_;
  std::optional<TuningChoices> tuning_;
  std::unordered_map<int, int> kernel_of_;  // pool index to program index
  Program program_;
  BufferPlacement buffers_;
  std::map<ValueId, bool> kept_;  // the decisions of keeps()
  std::int64_t kept_bytes_ = 0;
  int next_region_ = 0;  // the number of the next launch that is not of a region of this graph
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
  Program program = Lowering(graph, regions, machine, options, pool).run();
  if (machine.finish) machine.finish(program);
  return program;
}

}  // namespace lathe
