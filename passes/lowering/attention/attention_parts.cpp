#include "passes/lowering/attention/attention_parts.h"

#include <algorithm>
#include <utility>

#include "passes/fusion/attention/fuse_attention.h"

namespace lathe {

namespace {

class AttentionPartsFinder {
 public:
  AttentionPartsFinder(const LoweringContext& lowering, const Region& region, const ElementwiseProgram& program)
      : lowering_(lowering), graph_(lowering.graph), region_(region), program_(program) {}

  AttentionParts find() {
    parts_.row_dim = region_.attention().row;
    parts_.columns_dim = region_.domain.rank() - 1;
    parts_.compute = compute_type(graph_[region_.attention().scores[0]].type.dtype);
    order_outer_dims();
    for (const ir::ValueId id : region_.attention().scores) {
      group_.dims[id] = lowering_.plan.member_dims(id);
      if (graph_[id].op->as<ir::Contraction>()) add_score(id);
    }
    group_.domain = region_.domain;
    for (const Region& output : region_.attention().outputs) add_end(output);
    return std::move(parts_);
  }

 private:
  void order_outer_dims() {
    const auto has = [](const std::vector<int>& dims, int d) {
      return std::find(dims.begin(), dims.end(), d) != dims.end();
    };
    const auto count_of = [&](int d) {
      return has(region_.attention().sequential, d)    ? &parts_.sequential
             : has(region_.attention().accumulated, d) ? &parts_.accumulated
                                                       : &parts_.parallel;
    };
    for (Dim* const count : {&parts_.parallel, &parts_.accumulated, &parts_.sequential})
      for (int d = 0; d < parts_.columns_dim; ++d) {
        if (d == region_.attention().row || region_.domain[d].is(1) || count_of(d) != count) continue;
        parts_.outer.push_back(d);
        *count = *count * region_.domain[d].unnamed();
        if (count != &parts_.sequential) parts_.result_dims.push_back(d);
      }
  }

  AttentionOperand operand(ir::ValueId value, const std::vector<int>& dims) const {
    return attention_operand(lowering_, region_, value, dims, parts_.outer);
  }

  void add_score(ir::ValueId id) {
    const ir::Node& node = graph_[id];
    const ir::ContractionRoles roles = node.op->as<ir::Contraction>()->roles(node);
    const std::vector<int>& dims = lowering_.plan.member_dims(id);
    const std::string contracted = roles.contracted();
    AttentionParts::Score score;
    score.value = program_.members.at(id);
    for (int k = 0; k < 2; ++k) {
      std::vector<int> mapped;
      for (const char c : k == 0 ? roles.lhs : roles.rhs) {
        const auto out = roles.out.find(c);
        mapped.push_back(out != std::string::npos
                             ? dims[out]
                             : AttentionOperand::depth_dim - static_cast<int>(contracted.find(c)));
      }
      AttentionOperand found = operand(node.operands[k], mapped);
      score.depth = found.size;
      (found.by_column ? score.columns : score.rows) = std::move(found);
    }
    const auto depth = score.depth.value();
    score.is_bf16 = score.rows.dtype() == bf16 && score.columns.dtype() == bf16;
    score.pairs = score.is_bf16 && has_dot_pairs() && depth && *depth % 2 == 0;
    parts_.scores.push_back(std::move(score));
  }

  bool has_dot_pairs() const { return lowering_.if_cpu() && lowering_.if_cpu()->dot_pairs; }

  void add_end(const Region& region) {
    const ir::ValueId id = region.members[0];
    const ir::Node& node = graph_[id];
    const ir::ContractionRoles roles = node.op->as<ir::Contraction>()->roles(node);
    const auto own = member_operand(graph_, group_, id);
    LATHE_ASSERT(own.has_value());
    const bool left = own->operand == 0;
    std::map<char, int> domain_dim;
    for (std::size_t i = 0; i < own->dims.size(); ++i) domain_dim[(left ? roles.lhs : roles.rhs)[i]] = own->dims[i];
    std::string depth;
    for (const char c : roles.out)
      if (!domain_dim.contains(c)) depth += c;
    std::vector<int> mapped;
    for (const char c : left ? roles.rhs : roles.lhs) {
      const auto at = domain_dim.find(c);
      mapped.push_back(at != domain_dim.end() ? at->second
                                              : AttentionOperand::depth_dim - static_cast<int>(depth.find(c)));
    }
    AttentionParts::OutputProduct output;
    output.node = id;
    output.value = program_.members.at(own->member);
    output.other = operand(node.operands[left ? 1 : 0], mapped);
    output.over_rows = !output.other.by_column;
    output.depth = output.other.size;
    const bool scores = program_[output.value].kind == ElementwiseInstruction::Kind::accumulator;
    output.is_bf16 = !scores && graph_[own->member].type.dtype == bf16 && output.other.dtype() == bf16;
    output.pairs = output.is_bf16 && has_dot_pairs() && output.depth.value();
    output.epilogue = region_program(graph_, lowering_.plan, region);
    const int position = output.over_rows ? parts_.columns_dim : parts_.row_dim;
    for (const int d : output.over_rows ? parts_.result_dims : parts_.outer)
      for (int i = 0; i < static_cast<int>(roles.out.size()); ++i) {
        const auto at = domain_dim.find(roles.out[i]);
        if (at != domain_dim.end() && at->second == d) output.outer_dims.push_back(i);
      }
    for (int i = 0; i < static_cast<int>(roles.out.size()); ++i) {
      const auto at = domain_dim.find(roles.out[i]);
      if (at == domain_dim.end())
        output.depth_dims.push_back(i);
      else if (at->second == position)
        output.position_dims.push_back(i);
    }
    parts_.outputs.push_back(std::move(output));
  }

  const LoweringContext& lowering_;
  const ir::Graph& graph_;
  const Region& region_;
  const ElementwiseProgram& program_;
  AttentionGroup group_;  // the members' dims
  AttentionParts parts_;
};

}  // namespace

bool AttentionParts::sums_over_rows() const {
  return std::any_of(outputs.begin(), outputs.end(), [](const OutputProduct& output) { return output.over_rows; });
}

AttentionParts attention_parts(const LoweringContext& lowering, const Region& region,
                               const ElementwiseProgram& program) {
  return AttentionPartsFinder(lowering, region, program).find();
}

AttentionParts parts_with(AttentionParts parts, OutputProducts wanted) {
  if (wanted == OutputProducts::all) return parts;
  std::erase_if(parts.outputs,
                [&](const auto& output) { return output.over_rows != (wanted == OutputProducts::over_rows); });
  if (wanted == OutputProducts::over_rows)
    parts.parallel = parts.parallel * std::exchange(parts.accumulated, Dim(1));
  else
    parts.accumulated = parts.accumulated * std::exchange(parts.sequential, Dim(1));
  return parts;
}

}  // namespace lathe
