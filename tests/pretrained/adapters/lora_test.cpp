#include "models/pretrained/lora/lora.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/grad.h"
#include "frontend/initial_values.h"
#include "frontend/train/step.h"
#include "tests/pretrained/cases/token_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::CaseGraph;
using test::HfAdapterCase;
using test::tolerance_of;

namespace {

nlohmann::json json_of(const std::filesystem::path& file) { return nlohmann::json::parse(std::ifstream(file)); }

struct Adapted {
  pretrained::Pretrained model;
  pretrained::Lora lora;

  Adapted(const HfAdapterCase& which, const std::filesystem::path& adapter, DType dtype)
      : model(pretrained::load_pretrained<pretrained::CausalLm>(which.base.folder())),
        lora(load_lora(model, adapter)) {
    test::store_in(model, dtype);
  }
};

/// Returns the adapter of a case without dropout, which the reference disables in training too.
Adapted adapted(const HfAdapterCase& which, DType dtype) {
  const test::ScratchFolder folder;
  nlohmann::json config = json_of(which.folder() / "adapter_config.json");
  config["lora_dropout"] = 0;
  test::spit(folder / "adapter_config.json", config.dump());
  std::filesystem::copy_file(which.folder() / "adapter_model.safetensors", folder / "adapter_model.safetensors");
  return Adapted(which, folder.path(), dtype);
}

void check_forward(const HfAdapterCase& which, DType dtype, ObjectStore& store) {
  const Adapted on(which, which.folder(), dtype);
  CaseGraph c(which.base, dtype, true);
  c.g.output("logits", on.model.model->logits(c.inputs));
  c.g.output("loss", on.model.model->loss(c.inputs, c.labels));
  // llama_lora has dropout in training.
  Executable exe = compile(c.g.finish(), {.mode = Mode::evaluation, .parameters = on.model.weights, .cache = &store});
  const Tensors got = exe.run(c.values);
  const HostTensor* mask = c.values.contains("attention_mask") ? &c.values.at("attention_mask") : nullptr;
  CHECK(test::error_of(got.at("logits"), which.expected().tensor("logits"), mask) <= tolerance_of(dtype).forward);
  CHECK(test::error_of(got.at("loss"), which.expected().tensor("loss")) <= tolerance_of(dtype).loss);
}

void check_gradients(const HfAdapterCase& which, DType dtype, ObjectStore& store) {
  const Adapted on = adapted(which, dtype);
  CaseGraph c(which.base, dtype, true);
  std::vector<Tensor> wanted;
  for (const nn::Parameter& parameter : on.lora.parameters()) wanted.push_back(parameter.in(c.g));
  const std::vector<Tensor> gradients = grad(on.model.model->loss(c.inputs, c.labels), wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    c.g.output("grad.base_model.model." + on.lora.parameters()[i].name(), gradients[i]);
  Executable exe = compile(c.g.finish(), {.parameters = on.model.weights, .cache = &store});
  const Tensors got = exe.run(c.values);
  const SafetensorsFile expected = which.expected();
  int compared = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("grad.")) continue;
    INFO(name);
    CHECK(test::error_of(got.at(name), expected.tensor(name)) <= tolerance_of(dtype).grad);
    ++compared;
  }
  CHECK(compared >= 2);
}

void check_training(const HfAdapterCase& which, DType dtype, ObjectStore& store) {
  Adapted on = adapted(which, dtype);
  CaseGraph c(which.base, dtype, true);
  const test::HfTraining t = test::hf_training();
  c.g.output("loss", on.model.model->loss(c.inputs, c.labels));
  const ir::Graph step = training_step(
      c.g, on.model.model->loss(c.inputs, c.labels),
      AdamW{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .eps = t.eps, .weight_decay = t.weight_decay},
      {.trainable = nn::trainable(*on.model.model)});
  Executable exe = compile(step, {.parameters = on.model.weights, .cache = &store});
  std::int64_t moments = 0;
  for (auto& [name, value] : initial_values(step, {}, 1)) {
    if (!name.starts_with("optimizer.")) continue;
    moments += name.starts_with("optimizer.m.");
    CHECK((!name.starts_with("optimizer.m.") || name.find(".lora_") != std::string::npos));
    on.model.weights.set(name, value);
  }
  CHECK(moments == std::ssize(on.lora.parameters()));
  const HostTensor want = which.expected().tensor("train_loss");
  HostTensor got(f64, want.shape());
  for (std::int64_t i = 0; i <= t.steps; ++i) got.set(i, exe.run(c.values).at("loss").get(0));
  CHECK(want.numel() == t.steps + 1);
  CHECK(test::error_of(got, want) <= tolerance_of(dtype).train);
}

void check_merging(const HfAdapterCase& which, DType dtype, ObjectStore& store) {
  const test::ScratchFolder folder;
  {
    Adapted on = adapted(which, dtype);
    merge_lora(on.lora, on.model, {.cache = &store});
    CHECK(on.model.weights.names().size() == on.model.places.size());
    save(on.model, folder.path() / "merged");
  }
  const auto merged = pretrained::load_pretrained<pretrained::CausalLm>(folder.path() / "merged");
  CaseGraph c(which.base, dtype, false);
  c.g.output("logits", merged.model->logits(c.inputs));
  Executable exe = compile(c.g.finish(), {.parameters = merged.weights, .cache = &store});
  const SafetensorsFile expected = which.expected();
  const HostTensor* mask = c.values.contains("attention_mask") ? &c.values.at("attention_mask") : nullptr;
  CHECK(test::error_of(exe.run(c.values).at("logits"), expected.tensor("merged_logits"), mask) <=
        tolerance_of(dtype).forward);
  int compared = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("merged.")) continue;
    CHECK(test::error_of(merged.weights.get(name.substr(7)), expected.tensor(name)) <= tolerance_of(dtype).forward);
    ++compared;
  }
  CHECK(compared == 1);
}

/// Returns the reason for which a configuration is rejected.
std::string refusal_of(const std::string& json) {
  try {
    (void)pretrained::read_lora_config(pretrained::Config::parse(json, "adapter_config.json"));
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

pretrained::Pretrained tiny(const std::string& name) {
  for (const test::HfCase& which : test::hf_cases("causal-lm"))
    if (which.name == name) return pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
  throw InternalError("no case " + name);
}

using Names = std::vector<std::string>;

Names adapted_by(const std::string& model, const pretrained::LoraConfig& config) {
  pretrained::Pretrained base = tiny(model);
  Names paths;
  for (const nn::Linear& layer : add_lora(base, config, 1).layers) paths.push_back(layer.path());
  return paths;
}

}  // namespace

TEST_CASE("PEFT adapters match its logits, loss, gradients, training and merged weights") {
  const auto cases = test::hf_adapter_cases();
  CHECK(cases.size() == 5);
  for (const HfAdapterCase& which : cases)
    for (const DType dtype : {f64, f32}) {
      INFO(which.name << " " << name(dtype));
      test::KernelStore store;
      check_forward(which, dtype, store);
      check_gradients(which, dtype, store);
      check_training(which, dtype, store);
      check_merging(which, dtype, store);
    }
}

TEST_CASE("an adapter is saved as PEFT saves it: the same tensors, the same configuration") {
  for (const HfAdapterCase& which : test::hf_adapter_cases()) {
    INFO(which.name);
    const test::ScratchFolder folder;
    auto model = pretrained::load_pretrained<pretrained::CausalLm>(which.base.folder());
    const pretrained::Lora lora = load_lora(model, which.folder());
    save_lora(lora, model.weights, folder.path() / "adapter");
    const auto was = SafetensorsFile::open(which.folder() / "adapter_model.safetensors");
    const auto is = SafetensorsFile::open(folder.path() / "adapter" / "adapter_model.safetensors");
    CHECK(is.metadata() == was.metadata());
    REQUIRE(is.names().size() == was.names().size());
    for (const std::string& name : was.names()) {
      INFO(name);
      REQUIRE(is.contains(name));
      CHECK(is.info(name).dtype == was.info(name).dtype);
      CHECK(test::error_of(is.tensor(name), was.tensor(name)) == 0);
    }
    nlohmann::json before = json_of(which.folder() / "adapter_config.json");
    const nlohmann::json after = json_of(folder.path() / "adapter" / "adapter_config.json");
    for (const auto& [key, value] : after.items()) {
      INFO(key);
      CHECK(value == before.at(key));
    }
  }
}

TEST_CASE("a new adapter does not change outputs, and only its weights train") {
  pretrained::Pretrained plain = tiny("llama"), model = tiny("llama");
  const auto logits = [](const pretrained::Pretrained& of) {
    Graph g{"logits"};
    g.output("logits", of.model->logits({.ids = g.input("ids", i64, {Dim("B"), Dim("T")})}));
    HostTensor ids(i64, {1, 5});
    for (std::int64_t i = 0; i < 5; ++i) ids.set_int(i, 3 * i + 1);
    return compile(g.finish(), {.parameters = of.weights, .cache = test::shared_kernels()})
        .run({{"ids", ids}})
        .at("logits");
  };
  const std::int64_t count = model.model->count();
  const pretrained::Lora lora =
      add_lora(model, {.r = 4, .alpha = 8, .targets = Names{"q_proj", "v_proj"}, .modules_to_save = {"lm_head"}}, 7);
  CHECK(test::error_of(logits(model), logits(plain)) == 0);
  CHECK(model.model->count() > count);
  std::int64_t trained = 0;
  for (const nn::Parameter& parameter : model.model->parameters()) {
    const bool adapter = parameter.name().find(".lora_") != std::string::npos;
    CHECK(parameter.is_frozen() == !(adapter || parameter.name() == "lm_head.weight"));
    trained += !parameter.is_frozen();
  }
  CHECK(trained == std::ssize(lora.parameters()));
  // Like torch.nn.Linear: uniform in +-in^-0.5.
  const HostTensor& a = model.weights.get("model.layers.0.self_attn.q_proj.lora_A.weight");
  const double limit = 1 / std::sqrt(static_cast<double>(a.shape()[1]));
  double largest = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) largest = std::max(largest, std::abs(a.get(i)));
  CHECK(largest <= limit);
  CHECK(largest > limit * 0.9);
  CHECK_THROWS_WITH(add_lora(model, {.targets = Names{"q_proj"}}, 1), Contains("[parameter_name]"));
}

TEST_CASE("an adapter with modules_to_save round-trips") {
  const test::ScratchFolder folder;
  pretrained::Pretrained model = tiny("llama");
  const pretrained::Lora lora =
      add_lora(model, {.targets = Names{"o_proj"}, .modules_to_save = {"lm_head", "norm"}}, 7);
  HostTensor head = model.weights.get("lm_head.weight");
  head.set(0, 17);
  model.weights.set("lm_head.weight", head);
  save_lora(lora, model.weights, folder.path());
  const auto file = SafetensorsFile::open(folder.path() / "adapter_model.safetensors");
  CHECK(file.contains("base_model.model.lm_head.weight"));
  CHECK(file.contains("base_model.model.model.norm.weight"));
  CHECK(file.contains("base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight"));
  pretrained::Pretrained again = tiny("llama");
  const pretrained::Lora loaded = load_lora(again, folder.path());
  CHECK(again.weights.get("lm_head.weight").get(0) == 17);
  CHECK(loaded.parameters().size() == lora.parameters().size());
}

TEST_CASE("target_modules select layers like PEFT") {
  CHECK(adapted_by("llama", {.targets = std::string(R"(model\.layers\.\d+\.mlp\.(up|down)_proj)")}).size() == 4);
  CHECK(adapted_by("llama", {.targets = Names{"q_proj"}}) ==
        Names{"model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"});
  CHECK(adapted_by("llama", {.targets = Names{"q_proj"}, .layers = {1}}) == Names{"model.layers.1.self_attn.q_proj"});
  CHECK(adapted_by("llama", {.targets = Names{"q_proj"}, .layers = {0}, .layers_pattern = {"layers"}}) ==
        Names{"model.layers.0.self_attn.q_proj"});
  CHECK(adapted_by("llama", {.targets = Names{"q_proj", "k_proj"}, .excluded = Names{"layers.0.self_attn.q_proj"}})
            .size() == 3);
  CHECK(adapted_by("llama", {}).size() == 14);  // all except the output layer
  CHECK(adapted_by("llama", {.targets = Names{"lm_head"}}) == Names{"lm_head"});
  CHECK(adapted_by("phi3", {.targets = Names{"qkv_proj"}}).size() == 2);  // one layer, one adapter
}

TEST_CASE("layer adapters have a rank and a scale, and can be removed") {
  const nn::Module root("Root");
  const nn::Linear layer(root, "fc", 3, 2);
  CHECK_THROWS_WITH(layer.add_low_rank({.r = Dim("r", 0)}), Contains("[low_rank_options]"));
  CHECK_THROWS_WITH(layer.add_low_rank({.scale = std::nan("")}), Contains("[low_rank_options]"));
  CHECK(root.parameters().size() == 2);
  CHECK(layer.add_low_rank({.r = Dim("r", 4)}).b().name() == "fc.lora_B.weight");
  CHECK(root.print_tree().find("LowRank") != std::string::npos);
  CHECK(root.parameters().size() == 4);
  nn::Linear::of(root.children()[0])->remove_low_rank();  // copies refer to the same layer
  CHECK(layer.low_rank() == nullptr);
  CHECK(root.parameters().size() == 2);
  layer.add_low_rank({});
  CHECK_FALSE(nn::Linear::of(root).has_value());
}

TEST_CASE("ranks and scales per layer") {
  const pretrained::LoraConfig config{.r = 6,
                                      .alpha = 12,
                                      .rank_pattern = {{"k_proj", 2}, {"layers.0.mlp.up_proj", 3}},
                                      .alpha_pattern = {{"layers\\.\\d\\.mlp\\..*", 9}}};
  CHECK(config.r_of("model.layers.0.self_attn.k_proj") == 2);
  CHECK(config.r_of("model.layers.0.self_attn.xk_proj") == 6);
  CHECK(config.r_of("model.layers.0.mlp.up_proj") == 3);
  CHECK(config.scale_of("model.layers.0.mlp.up_proj") == 3);
  CHECK(config.scale_of("model.layers.1.self_attn.q_proj") == 2);
  pretrained::LoraConfig rslora = config;
  rslora.rslora = true;
  CHECK(rslora.scale_of("model.layers.1.self_attn.q_proj") == 12 / std::sqrt(6.0));
}

TEST_CASE("rejects unsupported adapter configurations") {
  const std::string start = R"({"peft_type": "LORA", "target_modules": ["q_proj"])";
  CHECK(refusal_of(start + "}").empty());
  CHECK(refusal_of(start + R"(, "use_dora": false, "new_option": null, "other": {}})").empty());
  for (const std::string option :
       {R"("use_dora": true)", R"("lora_bias": true)", R"("bias": "all")", R"("init_lora_weights": "pissa")",
        R"("new_option": 3)", R"("layer_replication": [[0, 1]])", R"("target_parameters": ["x"])", R"("r": 0)",
        R"("lora_dropout": 1)", R"("rank_pattern": {"x": -1})", R"("trainable_token_indices": [1])"}) {
    INFO(option);
    CHECK_THAT(refusal_of(start + ", " + option + "}"),
               Contains("adapter_config.json") && Contains("[config_value]"));
  }
  CHECK_THAT(refusal_of(start + R"(, "lora_alpha": "x"})"), Contains("[config_type]"));
  CHECK_THAT(refusal_of(R"({"peft_type": "IA3", "target_modules": ["q"]})"), Contains("peft_type is \"IA3\""));
  CHECK_THAT(refusal_of(R"({"peft_type": "LORA"})"), Contains("target_modules"));
}

TEST_CASE("adapters that do not fit a model are rejected by name") {
  const auto refused = [](const std::string& model, const pretrained::LoraConfig& config) {
    pretrained::Pretrained base = tiny(model);
    try {
      (void)add_lora(base, config, 1);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused("llama", {.targets = Names{"q_prj"}}),
             Contains("no module named q_prj") && Contains("q_proj") && Contains("[adapter_target]"));
  CHECK_THAT(refused("llama", {.targets = Names{"embed_tokens"}}),
             Contains("model.embed_tokens is of kind Embedding"));
  CHECK_THAT(refused("llama", {.targets = std::string("nothing")}), Contains("[adapter_target]"));
  CHECK_THAT(refused("llama", {.targets = std::string("(")}), Contains("[adapter_pattern]"));
  CHECK_THAT(refused("gpt2", {.targets = Names{"c_attn"}, .modules_to_save = {"wte"}}),
             Contains("transformer.wte is the table of the output layer too"));

  const HfAdapterCase llama = test::hf_adapter_cases()[1];
  const test::ScratchFolder folder;
  const auto loading = [&](const auto& change) {
    Tensors tensors;
    const auto file = SafetensorsFile::open(llama.folder() / "adapter_model.safetensors");
    for (const std::string& name : file.names()) tensors.emplace(name, file.tensor(name));
    change(tensors);
    write_safetensors(folder.path() / "adapter_model.safetensors", tensors);
    std::filesystem::copy_file(llama.folder() / "adapter_config.json", folder.path() / "adapter_config.json",
                               std::filesystem::copy_options::overwrite_existing);
    auto base = pretrained::load_pretrained<pretrained::CausalLm>(llama.base.folder());
    try {
      (void)load_lora(base, folder.path());
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string a = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
  CHECK(loading([](Tensors&) {}).empty());
  CHECK_THAT(loading([&](Tensors& t) { t.erase(a); }), Contains(a) && Contains("[adapter_missing]"));
  CHECK_THAT(loading([&](Tensors& t) { t.at(a) = HostTensor(f32, {3, 32}); }),
             Contains(a) && Contains("[adapter_shape]"));
  CHECK_THAT(loading([](Tensors& t) { t.emplace("base_model.model.other.weight", HostTensor(f32, {1})); }),
             Contains("base_model.model.other.weight") && Contains("[adapter_left_over]"));
}
