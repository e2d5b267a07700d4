#include <catch2/catch.hpp>

#include "frontend/initial_values.h"
#include "frontend/train/training.h"
#include "passes/memory/memory_plan.h"
#include "runtime/executable_program.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/least_budget.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/kernel_store.h"

/// Rematerialization: less memory, the same bits.
using namespace lathe;
using Catch::Matchers::Contains;

namespace {

const DimBindings sizes{{"B", 4}, {"T", 48}};

struct Model {
  ir::Graph step;
  std::vector<Initializer> initializers;
};

template <class Config>
Model model_of(const Config& config, double clip_norm) {
  models::LossGraph loss = models::loss_graph(config);
  return {training_step(loss.graph, "loss", AdamW{.lr = 1e-3}, {.clip_norm = clip_norm}),
          std::move(loss.initializers)};
}

Model gpt(DType dtype = f32) { return model_of(lathe::test::small_gpt(dtype, 3), 1.0); }

Model llama() { return model_of(lathe::test::small_llama(f32, 3), 0); }

CompileOptions within(std::optional<std::int64_t> bytes, AttentionFusion attention) {
  static lathe::test::KernelStore store;
  CompileOptions options{.threads = 2, .cache = &store};
  options.lower.attention = attention;
  if (bytes) options.lower.memory = MemoryBudget{*bytes, sizes};
  return options;
}

std::int64_t peak(const Executable& executable) { return memory_plan_of(executable, sizes).total_bytes(); }

/// Runs two steps, the second at another size. Returns the results and all states.
Tensors train(Executable& executable, const Model& model) {
  executable.parameters().set(initial_values(model.step, model.initializers, 7));
  Tensors results;
  for (const auto& [batch, length] : {std::pair<std::int64_t, std::int64_t>{4, 48}, {3, 21}}) {
    HostTensor tokens(i64, {batch, length + 1});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, i * 5 % 31);
    results = executable.run({{"tokens", tokens}});
  }
  for (const auto& [name, value] : executable.parameters().values()) results.insert_or_assign(name, value);
  return results;
}

std::int64_t least(const Model& model, AttentionFusion attention) {
  return lathe::test::least_budget(model.step, within({}, attention), sizes).value();
}

/// Runs with budgets from unlimited down to the minimum: the actual peak fits, never rises, and the results keep
/// their bits.
void check_ladder(const Model& model, AttentionFusion attention) {
  Executable free = compile(model.step, within({}, attention));
  const Tensors expected = train(free, model);
  const std::int64_t most = peak(free), lowest = least(model, attention);
  INFO("from " << most << " to " << lowest);
  CHECK(lowest < most);
  std::int64_t before = most;
  constexpr int rungs = 6;
  for (int rung = 0; rung <= rungs; ++rung) {
    const std::int64_t budget = most - (most - lowest) * rung / rungs;
    Executable executable = compile(model.step, within(budget, attention));
    INFO("budget " << budget);
    CHECK(peak(executable) <= budget);
    CHECK(peak(executable) <= before);
    before = peak(executable);
    for (const auto& [name, value] : train(executable, model)) {
      INFO(name);
      CHECK(value.same_bits(expected.at(name)));
    }
  }
  CHECK(before == lowest);
  CHECK_THROWS_WITH(compile(model.step, within(lowest - 1, attention)), Contains("memory_budget"));
}

}  // namespace

TEST_CASE("memory budget: the peak never rises as the budget shrinks, with the same bits") {
  for (const AttentionFusion attention : {AttentionFusion::off, AttentionFusion::automatic}) {
    INFO("attention " << static_cast<int>(attention));
    check_ladder(gpt(), attention);
    check_ladder(llama(), attention);
  }
}

TEST_CASE("memory budget: rematerialised steps match the interpreter") {
  const Model model = gpt(f64);
  Executable executable = compile(model.step, within(least(model, AttentionFusion::off), AttentionFusion::off));
  const Tensors found = train(executable, model);
  Tensors states = initial_values(model.step, model.initializers, 7), results;
  for (const auto& [batch, length] : {std::pair<std::int64_t, std::int64_t>{4, 48}, {3, 21}}) {
    HostTensor tokens(i64, {batch, length + 1});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, i * 5 % 31);
    Tensors arguments = states;
    arguments.insert_or_assign("tokens", tokens);
    results = ir::interpret(model.step, arguments);
    for (auto& [name, value] : states)
      if (const auto at = results.find(name); at != results.end()) value = at->second;
  }
  lathe::test::check_close(found, results, 1e-8);
}

TEST_CASE("memory budget: budgets that cannot be met, and missing sizes") {
  const Model model = gpt();
  CHECK_THROWS_WITH(compile(model.step, within(1000, AttentionFusion::automatic)),
                    Contains("does not fit a memory budget of 1000 B") &&
                        Contains("of arguments, states and results") && Contains("[memory_budget]") &&
                        Contains("are the least"));
  CompileOptions options = within(1 << 30, AttentionFusion::automatic);
  options.lower.memory->dims = {{"B", 4}};
  CHECK_THROWS_WITH(compile(model.step, options), Contains("T has none") && Contains("[memory_dims]"));
}
