// Mistral 7B (Jiang et al. 2023): Llama with a window.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

CausalLmOptions describe_mistral(const Config& config) { return decoder_options(config, "Mistral"); }

}  // namespace

Family mistral() {
  return {
      .model_types = {"mistral"},
      .keys = KeyTable(
          {base_keys(),
           decoder_keys("10000.0", "131072"),
           {used("num_key_value_heads", "8"), used("sliding_window", "4096"),
            refused(
                "layer_types", {},
                "a Mistral has one kind of layer; a model with several is a Ministral, which Lathe does not read")}}),
      .make = describe_mistral,
      .names = {.ignored = {"*.rotary_emb.inv_freq"}}};
}

}  // namespace lathe::pretrained::families
