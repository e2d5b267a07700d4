#include "models/pretrained/lora/attach.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "models/pretrained/lora/module_names.h"

namespace lathe::pretrained {

namespace {

/// Collects all modules below that have their own path.
void collect(const nn::Module& module, std::vector<nn::Module>& all) {
  for (const nn::Module& child : module.children()) {
    if (!child.name().empty()) all.push_back(child);
    collect(child, all);
  }
}

std::vector<nn::Module> modules_of(const nn::Module& model) {
  std::vector<nn::Module> all;
  collect(model, all);
  return all;
}

bool is_output(const LoraBase& base, const nn::Module& module) {
  return base.output_layer && base.output_layer->path() == module.path();
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// Returns "the linear layers are c_attn, c_fc, c_proj", with suggestions for the name.
std::string about_layers(const std::vector<nn::Module>& modules, std::string_view name) {
  std::set<std::string> names;
  for (const nn::Module& module : modules)
    if (nn::Linear::of(module)) names.insert(last_name(module.path()));
  const std::vector<std::string_view> views(names.begin(), names.end());
  return did_you_mean_or_list(name, views, "the linear layers are");
}

nn::LowRankOptions options_of(const LoraConfig& config, const std::string& path) {
  const std::int64_t r = config.r_of(path);
  nn::LowRankOptions options{.r = Dim("r", r), .scale = config.scale_of(path), .dropout = config.dropout};
  switch (config.start) {
    case LoraConfig::Start::kaiming: break;
    case LoraConfig::Start::gaussian: options.a = Init::normal({.deviation = 1 / static_cast<double>(r)}); break;
    case LoraConfig::Start::random: {
      const double limit = 1 / std::sqrt(static_cast<double>(r));
      options.b = Init::uniform({.low = -limit, .high = limit});
      break;
    }
  }
  return options;
}

void save_whole(const LoraBase& base, const nn::Module& module, Lora& lora) {
  for (const nn::Parameter& parameter : module.own_parameters()) {
    if (base.tied && base.tied->name() == parameter.name())
      throw UserError(
          fmt::format("{} is the table of the output layer too, and cannot be trained apart from it", module.path()),
          "adapter_target", "leave it out of modules_to_save");
    lora.whole.push_back({parameter, parameter.dtype()});
  }
}

/// Rejects a tied output layer as a target: it has no module here, but it has one in PEFT.
void check_tied(const LoraBase& base, const LoraConfig& config) {
  if (!base.tied || config.targets == ModuleNames("all-linear")) return;
  const std::string& name = base.output_name;
  if (is_target(config, name, true) || is_saved_whole(config, name))
    throw UserError(fmt::format("{} shares the table {} of the embeddings, and has no adapter and no weight apart "
                                "from it",
                                name, base.tied->name()),
                    "adapter_target",
                    "leave the output layer out of target_modules and modules_to_save, or untie it in the model");
}

}  // namespace

Lora attach(const LoraBase& base, const LoraConfig& config) {
  const nn::Module& model = base.model;
  const std::vector<nn::Module> modules = modules_of(model);
  check_tied(base, config);
  Lora lora{.config = config, .layers = {}, .root = base.root};
  for (const nn::Module& module : modules) {
    const std::string path = base.name_of(module.path());
    if (is_saved_whole(config, path)) {
      save_whole(base, module, lora);
      continue;
    }
    const auto layer = nn::Linear::of(module);
    const bool takes_all = config.targets == ModuleNames("all-linear");
    if ((takes_all && !layer) || !is_target(config, path, is_output(base, module))) continue;
    if (!layer)
      throw UserError(fmt::format("{} is of kind {}: adapters are for linear layers", module.path(), module.kind()),
                      "adapter_target", about_layers(modules, last_name(module.path())));
    lora.layers.push_back(*layer);
  }
  if (lora.layers.empty() && lora.whole.empty())
    throw UserError(fmt::format("no layer of the {} is one of the adapter's target_modules", model.kind()),
                    "adapter_target", about_layers(modules, ""));
  model.freeze();
  for (const Lora::Whole& each : lora.whole) each.parameter.freeze(false);
  for (const nn::Linear& layer : lora.layers) layer.add_low_rank(options_of(config, base.name_of(layer.path())));
  return lora;
}

void check_names(const LoraBase& base, const LoraConfig& config) {
  check_tied(base, config);
  const std::vector<nn::Module> modules = modules_of(base.model);
  const auto check = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (std::none_of(modules.begin(), modules.end(), [&](const nn::Module& module) {
            return is_among(std::vector{name}, base.name_of(module.path()));
          }))
        throw UserError(fmt::format("the {} has no module named {}", base.model.kind(), name), "adapter_target",
                        about_layers(modules, name));
  };
  if (const auto* targets = std::get_if<std::vector<std::string>>(&config.targets)) check(*targets);
  check(config.modules_to_save);
}

}  // namespace lathe::pretrained
