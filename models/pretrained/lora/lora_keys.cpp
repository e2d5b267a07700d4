#include "models/pretrained/lora/lora_config.h"

namespace lathe::pretrained {

const KeyTable& lora_keys() {
  constexpr std::string_view other =
                                 "Lathe computes low-rank adapters of linear layers in the form of Hu et al. 2021",
                             starts = "it changes the weights of the model itself",
                             metadata = "says where it was made";
  static const KeyTable table({{
      used("alpha_pattern"),
      used("base_model_name_or_path"),
      refused("bias", "[\"none\"]", "Lathe trains no biases with an adapter"),
      used("exclude_modules"),
      used("init_lora_weights"),
      used("layers_pattern"),
      used("layers_to_transform"),
      used("lora_alpha"),
      used("lora_dropout"),
      used("modules_to_save"),
      used("peft_type"),
      used("r"),
      used("rank_pattern"),
      used("target_modules"),
      used("use_rslora"),

      refused("alora_invocation_tokens", "[false, {}, []]", other),
      refused("arrow_config", "[false, {}, []]", other),
      refused("corda_config", "[false, {}, []]", starts),
      refused("kasa_config", "[false, {}, []]", other),
      refused("layer_replication", "[false, {}, []]", "Lathe repeats no layers"),
      refused("loftq_config", "[false, {}, []]", starts),
      refused("lora_bias", "[false, {}, []]", "Lathe adds no biases to an adapter"),
      refused("lora_ga_config", "[false, {}, []]", starts),
      refused("megatron_config", "[false, {}, []]", other),
      refused("monteclora_config", "[false, {}, []]", other),
      refused("target_parameters", "[false, {}, []]", "Lathe adapts linear layers by their names: target_modules"),
      refused("trainable_token_indices", "[false, {}, []]", "Lathe trains whole tables alone: modules_to_save"),
      refused("use_bdlora", "[false, {}, []]", other),
      refused("use_dora", "[false, {}, []]", other),
      refused("use_qalora", "[false, {}, []]", other),
      refused("velora_config", "[false, {}, []]", other),

      harmless("auto_mapping", "config.json of the model says its class"),
      harmless("ensure_weight_tying", "adapters of a table that two layers share are refused"),
      harmless("eva_config", "chose the start of A, whose values are in the file"),
      harmless("fan_in_fan_out", "the model says how a weight is stored"),
      harmless("inference_mode", "the command says whether an adapter is trained"),
      harmless("megatron_core", "has a meaning with megatron_config alone"),
      harmless("peft_version", metadata),
      harmless("qalora_group_size", "has a meaning with use_qalora alone"),
      harmless("revision", metadata),
      harmless("runtime_config", "how PEFT moves values between devices"),
      harmless("task_type", "config.json of the model says what it computes"),
  }});
  return table;
}

}  // namespace lathe::pretrained
