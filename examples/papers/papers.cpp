#include "examples/papers/papers.h"

#include <array>

namespace lathe::papers {

std::span<const Paper> all_papers() {
  static constexpr std::array<Paper, 13> papers = {{{"clip", clip},
                                                    {"diffusion_transformer", diffusion_transformer},
                                                    {"direct_preference", direct_preference},
                                                    {"gan", gan},
                                                    {"latent_attention", latent_attention},
                                                    {"mamba2", mamba2},
                                                    {"mixture_of_experts", mixture_of_experts},
                                                    {"muon", muon_mlp},
                                                    {"physics_informed", physics_informed},
                                                    {"resnet", resnet, 64},
                                                    {"u_net", u_net},
                                                    {"vae", vae},
                                                    {"whisper_stem", whisper_stem}}};
  return papers;
}

}  // namespace lathe::papers
