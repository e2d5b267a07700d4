#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "frontend/nn/module.h"
#include "models/pretrained/family.h"
#include "runtime/parameters/parameters.h"

/// Small language models with random configurations and weights, and random texts for them.
namespace lathe::fuzz {

using Ids = std::vector<std::int64_t>;

enum class ModelKind : std::uint8_t { decoder, encoder, encoder_decoder };

struct RandomModel {
  ModelKind kind = ModelKind::decoder;
  std::string family;      ///< "model_type"
  std::string config;      ///< the text of config.json; weights are stored as f64
  std::int64_t vocab = 0;  ///< ids from 3 on are not special tokens
  std::int64_t turn = 0;   ///< text length from which windows and scalings have an effect
  bool shifts = true;      ///< shifting all positions gives the same results
};

/// Picks one of several integers. Integers only, so that a seed gives the same model with any standard library.
inline std::int64_t pick(std::mt19937& random, std::initializer_list<std::int64_t> choices) {
  return choices.begin()[random() % choices.size()];
}
inline bool one_in(std::mt19937& random, unsigned n) { return random() % n == 0; }

/// Successive numbers cycle through the families; sizes, heads, rotary scalings, windows and options are random.
RandomModel random_model(unsigned number, std::mt19937& random);
/// Number of families.
unsigned family_count();

const pretrained::Family& family_of(const RandomModel& model);
/// Returns the keys that the family reads, with their defaults.
pretrained::Config config_of(const RandomModel& model);

/// Returns values for all parameters, with the magnitudes of trained weights.
Parameters random_weights(const nn::Module& model, std::mt19937& random);

/// Returns `count` texts: shorter than model.turn, around it, and up to three times as long.
std::vector<Ids> random_texts(const RandomModel& model, std::size_t count, std::mt19937& random);

}  // namespace lathe::fuzz
