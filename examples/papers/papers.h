#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "frontend/dsl.h"

/// Models of papers, written as their pseudocode. Each function declares the inputs and the parameters of a model in
/// a graph and returns its loss; tests compare losses and gradients with PyTorch, bench_papers their speed.
namespace lathe::papers {

/// Sizes of a model. Each uses those that it has; `length` is also the side of an image.
struct Size {
  DType dtype = f32;
  std::int64_t batch = 2, length = 8, width = 16, heads = 2, layers = 2;
  std::int64_t vocabulary = 16;  ///< tokens, or classes: inputs of integers are below it
};

Tensor clip(const Graph& g, const Size& size);                   ///< Radford et al. 2021
Tensor diffusion_transformer(const Graph& g, const Size& size);  ///< DiT, Peebles and Xie 2022
Tensor direct_preference(const Graph& g, const Size& size);      ///< DPO, Rafailov et al. 2023
Tensor gan(const Graph& g, const Size& size);                    ///< Goodfellow et al. 2014
Tensor latent_attention(const Graph& g, const Size& size);       ///< MLA, DeepSeek-AI 2024
Tensor mamba2(const Graph& g, const Size& size);                 ///< Dao and Gu 2024
Tensor mixture_of_experts(const Graph& g, const Size& size);     ///< Fedus et al. 2021
Tensor muon_mlp(const Graph& g, const Size& size);               ///< trained by muon()
Tensor physics_informed(const Graph& g, const Size& size);       ///< PINN, Raissi et al. 2019
Tensor resnet(const Graph& g, const Size& size);        ///< ResNet-50, He et al. 2015; at most `layers` per stage
Tensor u_net(const Graph& g, const Size& size);         ///< Ho et al. 2020, with the U-Net of 2015
Tensor vae(const Graph& g, const Size& size);           ///< Kingma and Welling 2014
Tensor whisper_stem(const Graph& g, const Size& size);  ///< Radford et al. 2022

/// Muon (Jordan et al. 2024) for matrices, as a user writes it.
Optimizer muon(Schedule rate);

struct Paper {
  std::string_view name;  ///< also that of its file
  Tensor (*loss)(const Graph& g, const Size& size);
  std::int64_t least_length = 8;  ///< the smallest length with results that are not degenerate
};
/// Returns all models.
std::span<const Paper> all_papers();

}  // namespace lathe::papers
