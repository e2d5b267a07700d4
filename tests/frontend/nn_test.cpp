#include <catch2/catch.hpp>
#include <cmath>
#include <complex>

#include "frontend/dsl.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/tensors/sines.h"

using namespace lathe;
using test::sines;

TEST_CASE("one graph computes sinusoidal positions for any length") {
  Graph g{"positions"};
  const Dim S{"S"}, d{"d", 6};
  const Tensor x = g.input("x", f64, {S});
  g.output("pe", nn::sinusoidal_positions(g, x.size(0), d, f64));
  const ir::Graph graph = g.finish();
  for (const std::int64_t n : {1, 2, 37}) {
    const auto pe = ir::interpret(graph, {{"x", HostTensor(f64, {n})}}).at("pe");
    REQUIRE(pe.shape() == std::vector<std::int64_t>{n, 6});
    for (std::int64_t pos = 0; pos < n; ++pos)
      for (std::int64_t i = 0; i < 3; ++i) {
        const double angle = static_cast<double>(pos) * std::pow(10000.0, -2.0 * static_cast<double>(i) / 6.0);
        CHECK(pe.get(pos * 6 + 2 * i) == Approx(std::sin(angle)).margin(1e-12));
        CHECK(pe.get(pos * 6 + 2 * i + 1) == Approx(std::cos(angle)).margin(1e-12));
      }
  }
  CHECK_THROWS_AS(nn::sinusoidal_positions(g, 4, 5), UserError);
}

TEST_CASE("both rotary layouts rotate by position times frequency") {
  Graph g{"rotary"};
  const Dim S{"S"}, d{"d", 4};
  const Tensor x = g.input("x", f64, {1, 1, S, d});
  g.output("pairs", nn::rotate_pairs(x, nn::rotary_phases(g, g.arange(S, i64).unsqueeze(0), d, f64)));
  const auto tables = nn::rotary_tables(g, S, d, f64);
  g.output("halves", rope(x, tables.cos, tables.sin));
  const HostTensor given = sines({1, 1, 5, 4}, 0.7);
  const auto results = ir::interpret(g.finish(), {{"x", given}});
  for (std::int64_t pos = 0; pos < 5; ++pos)
    for (std::int64_t i = 0; i < 2; ++i) {
      const auto turn = std::polar(1.0, static_cast<double>(pos) * std::pow(10000.0, -static_cast<double>(i) / 2));
      const auto at = [&](std::int64_t j) { return pos * 4 + j; };
      const auto pair = std::complex(given.get(at(2 * i)), given.get(at(2 * i + 1))) * turn;
      CHECK(results.at("pairs").get(at(2 * i)) == Approx(pair.real()).margin(1e-12));
      CHECK(results.at("pairs").get(at(2 * i + 1)) == Approx(pair.imag()).margin(1e-12));
      const auto half = std::complex(given.get(at(i)), given.get(at(i + 2))) * turn;
      CHECK(results.at("halves").get(at(i)) == Approx(half.real()).margin(1e-12));
      CHECK(results.at("halves").get(at(i + 2)) == Approx(half.imag()).margin(1e-12));
    }
}

TEST_CASE("repeated heads are adjacent") {
  Graph g{"repeat"};
  const Tensor x = g.input("x", f64, {1, 2, 1, 1});
  const Tensor y = nn::repeat_heads(x, Dim{"groups", 3});
  g.output("y", y);
  const auto result = ir::interpret(g.finish(), {{"x", HostTensor::from({1, 2, 1, 1}, {5, 6}, f64)}}).at("y");
  const double wanted[] = {5, 5, 5, 6, 6, 6};
  for (std::int64_t i = 0; i < 6; ++i) CHECK(result.get(i) == wanted[i]);
}

TEST_CASE("multi-head attention requires heads that divide the width, and allows another value size") {
  Graph g{"heads"};
  const Dim B{"B"}, S{"S"}, d{"d_model", 10};
  CHECK_THROWS_WITH(nn::MultiHeadAttention(g, "bad", d, Dim{"h", 3}), Catch::Contains("[attention_heads]"));
  const nn::MultiHeadAttention good(g, "good", d, Dim{"h", 3}, {.d_k = Dim{"d_k", 4}, .d_v = Dim{"d_v", 5}});
  const Tensor x = g.input("x", f32, {B, S, d});
  CHECK(good(x, x).value().type().to_string() == "f32[B, S, d_model=10]");
}

TEST_CASE("feed-forward blocks and SwiGLU return the model width") {
  Graph g{"ffn"};
  const Dim B{"B"}, d{"d", 6}, f{"d_ff", 10};
  const Tensor x = g.input("x", f32, {B, d});
  for (const auto activation :
       {nn::Activation::relu, nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::silu}) {
    const auto scope = g.scope(std::to_string(static_cast<int>(activation)));
    CHECK(nn::FeedForward(g, "ffn", d, f, {.activation = activation})(x).shape() == x.shape());
  }
  CHECK(nn::GatedFeedForward(g, "mlp", d, f)(x).shape() == x.shape());
}

TEST_CASE("the decoder of the encoder-decoder cannot see padding or the future") {
  models::EncoderDecoderConfig config{.src_vocab = Dim{"src_vocab", 7},
                                      .tgt_vocab = Dim{"tgt_vocab", 7},
                                      .d_model = Dim{"d_model", 8},
                                      .d_ff = Dim{"d_ff", 12},
                                      .h = Dim{"h", 2},
                                      .layers = 1,
                                      .dtype = f64};
  Graph g{"model"};
  const models::EncoderDecoder model(g, config);
  const Dim B{"B"}, S{"S"}, T{"T"};
  g.output("logits", model.logits(g.input("src", i64, {B, S}), g.input("tgt", i64, {B, T})));
  const auto initializers = g.initializers();
  const ir::Graph graph = g.finish();
  Tensors arguments = initial_values(graph, initializers, 3);
  const auto logits = [&](const std::vector<std::int64_t>& src, const std::vector<std::int64_t>& tgt) {
    arguments.insert_or_assign("src", HostTensor::from_ints({1, static_cast<std::int64_t>(src.size())}, src));
    arguments.insert_or_assign("tgt", HostTensor::from_ints({1, static_cast<std::int64_t>(tgt.size())}, tgt));
    return ir::interpret(graph, arguments).at("logits");
  };
  const auto base = logits({3, 4, 5}, {1, 2, 3}), padded = logits({3, 4, 5, 0, 0}, {1, 2, 3}),
             later = logits({3, 4, 5}, {1, 2, 6}), other = logits({3, 4, 6}, {1, 2, 3});
  for (std::int64_t i = 0; i < 14; ++i) {
    CHECK(padded.get(i) == Approx(base.get(i)).margin(1e-9));
    CHECK(later.get(i) == Approx(base.get(i)).margin(1e-12));
  }
  CHECK(std::abs(other.get(0) - base.get(0)) > 1e-6);
  CHECK(std::abs(later.get(14) - base.get(14)) > 1e-6);
}

TEST_CASE("a sequence longer than the GPT context is an error when dims are bound") {
  Graph g{"gpt"};
  const models::Gpt model(g, {.vocab = Dim{"vocab", 5},
                              .context = Dim{"context", 4},
                              .d_model = Dim{"d_model", 8},
                              .h = Dim{"h", 2},
                              .layers = 1});
  const Tensor tokens = g.input("tokens", i64, {Dim{"B"}, Dim{"T"} + 1});
  const int line = __LINE__ + 1;
  g.output("loss", model.loss(tokens));
  const auto initializers = g.initializers();
  const ir::Graph graph = g.finish();
  Tensors arguments = initial_values(graph, initializers, 3);
  arguments.insert_or_assign("tokens", HostTensor(i64, {2, 5}));
  CHECK(ir::interpret(graph, arguments).at("loss").get(0) == Approx(std::log(5.0)).margin(0.1));
  arguments.insert_or_assign("tokens", HostTensor(i64, {2, 6}));
  const std::string here = "nn_test.cpp:" + std::to_string(line);
  CHECK_THROWS_WITH(ir::interpret(graph, arguments), Catch::StartsWith(here + ": ") && Catch::Contains("context=4"));
  HostTensor wrong(i64, {2, 5});
  wrong.set_int(wrong.offset({1, 2}), 5);
  arguments.insert_or_assign("tokens", wrong);
  CHECK_THROWS_WITH(ir::interpret(graph, arguments), Catch::StartsWith(here + ": gather: index 5 at [1, 2]"));
}
