#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/complex_elements.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "tests/support/texts/error_label.h"

using namespace lathe;
using test::error_label;

TEST_CASE("a host tensor is zeroed, aligned, and has value semantics") {
  for (const DType dtype : all_dtypes) {
    HostTensor a(dtype, {3, 5});
    CHECK(a.numel() == 15);
    CHECK(a.bytes() == 15 * size_in_bytes(dtype));
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
    for (std::int64_t i = 0; i < a.numel(); ++i) CHECK(get_complex(a, i) == 0.0);
    HostTensor b = a;
    b.set(7, 1);
    CHECK(get_complex(a, 7) == 0.0);
    CHECK(get_complex(b, 7) == 1.0);
    CHECK_FALSE(a.same_bits(b));
    a = b;
    CHECK(a.same_bits(b));
    const HostTensor c = std::move(b);
    CHECK(c.same_bits(a));
    CHECK(b.numel() == 0);  // NOLINT: the state of what was moved from is promised
    CHECK(b.shape() == std::vector<std::int64_t>{0});
  }
}

TEST_CASE("rank 0 has one element and a zero dim none") {
  CHECK(HostTensor(f32, {}).numel() == 1);
  CHECK(HostTensor::scalar(2.5, f64).get(0) == 2.5);
  CHECK(HostTensor(f32, {4, 0, 3}).numel() == 0);
  HostTensor none(f32, {4, 0, 3});
  CHECK(none.as<float>().empty());
  CHECK(HostTensor(HostTensor(f32, {0})).same_bits(HostTensor()));
}

TEST_CASE("elements are read by position, which must be in bounds") {
  const HostTensor a = HostTensor::from({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(a.at({1, 2}) == 5);
  CHECK(a.offset({1, 0}) == 3);
  CHECK(HostTensor::scalar(7).at({}) == 7);
  CHECK(position_of({2, 3}, 4) == std::vector<std::int64_t>{1, 1});
  CHECK(position_of({}, 0).empty());
  const std::string line = "host_tensor.cpp:" + std::to_string(__LINE__ + 1);
  CHECK_THROWS_WITH(a.at({0, 3}),
                    Catch::StartsWith(line) && Catch::Contains("[0, 3] of f32[2, 3]: dim 1 has size 3"));
  CHECK_THROWS_WITH(a.at({-1, 0}), Catch::Contains("position [-1, 0] of f32[2, 3]: dim 0 has size 2"));
  CHECK_THROWS_WITH(a.at({1}), Catch::Contains("position [1] of f32[2, 3]: it has 2 dims"));
  CHECK(error_label([&] { (void)a.offset({2, 0}); }) == "host_tensor_index");
}

TEST_CASE("elements are written by position, integers exactly") {
  HostTensor a(f32, {2, 3});
  a.set({0, 1}, 3);
  a.set({1, 2}, 2.5);
  a.set({1, 0}, -1.5f);
  CHECK(a.same_bits(HostTensor::from({2, 3}, {0, 3, 0, -1.5, 0, 2.5})));
  HostTensor row(f64, {3});
  row.set({2}, 7);  // a position, not an element number and a default
  CHECK(row.same_bits(HostTensor::from({3}, {0, 0, 7}, f64)));
  HostTensor one(f64, {});
  one.set({}, 4);
  CHECK(one.get(0) == 4);

  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;  // not representable in f64
  HostTensor ids(i64, {2, 2});
  ids.set({1, 1}, large);
  ids.set({0, 1}, 2.9);
  CHECK(ids.same_bits(HostTensor::from_ints({2, 2}, {0, 2, 0, large})));
  HostTensor flags(boolean, {2});
  flags.set({1}, true);
  CHECK(flags.get_int(1) == 1);
  HostTensor pairs(c64, {1, 2});
  pairs.set({0, 1}, 2);
  CHECK(get_complex(pairs, 1) == std::complex<double>(2, 0));

  const HostTensor before = a;
  const std::string line = "host_tensor.cpp:" + std::to_string(__LINE__ + 1);
  CHECK_THROWS_WITH(a.set({0, 3}, 1), Catch::StartsWith(line) &&
                                          Catch::Contains("set: position [0, 3] of f32[2, 3]: dim 1 has size 3") &&
                                          Catch::Contains("[host_tensor_index]"));
  CHECK_THROWS_WITH(a.set({1}, 1.0), Catch::Contains("position [1] of f32[2, 3]: it has 2 dims"));
  CHECK_THROWS_WITH(a.set({0, -1}, 1), Catch::Contains("position [0, -1]"));
  CHECK_THROWS_WITH(one.set({0}, 1), Catch::Contains("position [0] of f64[]: it has 0 dims"));
  CHECK(a.same_bits(before));
}

TEST_CASE("typed views require the element type") {
  HostTensor a = HostTensor::from({2}, {1.5, -2}, f32);
  CHECK(a.as<float>()[1] == -2.0f);
  CHECK(error_label([&] { (void)a.as<double>(); }) == "host_tensor_dtype");
  CHECK(error_label([&] { (void)a.as<std::int32_t>(); }) == "host_tensor_dtype");
  HostTensor flags = HostTensor::from({3}, {0, 2, -0.0}, boolean);
  CHECK(flags.as<std::uint8_t>()[1] == 1);
  CHECK(flags.as<bool>()[2] == false);
  const HostTensor bytes = HostTensor::from({2}, {-128, 127}, i8), counts = HostTensor::from({1}, {200}, u8);
  CHECK(bytes.as<std::int8_t>()[0] == -128);
  CHECK(counts.as<std::uint8_t>()[0] == 200);
  CHECK(error_label([&] { (void)bytes.as<std::uint8_t>(); }) == "host_tensor_dtype");
  CHECK(error_label([&] { (void)counts.as<bool>(); }) == "host_tensor_dtype");
  CHECK(bytes.to_string() == "i8[2] [-128, 127]");
  const HostTensor one = HostTensor::from({1}, {1}, bf16);
  CHECK(one.as<std::uint16_t>()[0] == 0x3f80);
}

TEST_CASE("a host tensor is made from spans of elements, in their dtype") {
  const std::vector<float> floats{1, 2, 3, 4};
  const HostTensor a = HostTensor::of({2, 2}, floats);
  CHECK(a.same_bits(HostTensor::from({2, 2}, {1, 2, 3, 4})));
  CHECK(a.same_bits(HostTensor::of<float>({2, 2}, {1, 2, 3, 4})));
  CHECK(a.same_bits(HostTensor::of({2, 2}, std::span(floats))));
  CHECK(HostTensor::of<std::int64_t>({2}, {1, std::int64_t{1} << 62}).get_int(1) == std::int64_t{1} << 62);
  CHECK(HostTensor::of<bool>({2}, {false, true}).dtype() == boolean);
  CHECK(HostTensor::of<std::uint8_t>({1}, {200}).dtype() == u8);
  CHECK(HostTensor::of<Bf16>({1}, {to_bf16(0.5)}).get(0) == 0.5);
  CHECK(HostTensor::of<double>({0, 3}, {}).numel() == 0);
  CHECK(error_label([&] { HostTensor::of({3}, floats); }) == "host_tensor_shape");

  std::vector<std::int32_t> ints{1, 2, 3};
  HostTensor borrowed = HostTensor::borrow({3}, std::span(ints));
  borrowed.set(1, 7);
  CHECK(ints[1] == 7);
  CHECK(borrowed.dtype() == i32);
  CHECK(error_label([&] { HostTensor::borrow({4}, std::span(ints)); }) == "host_tensor_shape");
}

TEST_CASE("one element, or all of them, are read as any C++ number") {
  CHECK(HostTensor::scalar(2.5).item() == 2.5);
  CHECK(HostTensor::of<std::int64_t>({1, 1}, {7}).item<int>() == 7);
  CHECK(HostTensor::of<bool>({}, {true}).item<bool>());
  CHECK(HostTensor::of<std::int64_t>({2}, {-1, 300}).values() == std::vector<double>{-1, 300});
  CHECK(HostTensor::from({2}, {0.5, 2}, bf16).values<float>() == std::vector<float>{0.5F, 2});
  CHECK(HostTensor::of<bool>({2}, {true, false}).values<int>() == std::vector<int>{1, 0});
  const auto fails = [](const auto& f) {
    std::string text;
    return error_label(f, &text) + " " + text;
  };
  const std::string line = "host_tensor.cpp:" + std::to_string(__LINE__ + 1);
  CHECK_THAT(fails([] { (void)HostTensor(f32, {2, 3}).item(); }),
             Catch::StartsWith("host_tensor_shape " + line) && Catch::Contains("f32[2, 3] has 6 elements"));
  CHECK_THAT(fails([] { (void)HostTensor::scalar(2.5).item<int>(); }),
             Catch::StartsWith("host_tensor_dtype") && Catch::Contains("f32[] has no integers"));
  CHECK_THAT(fails([] { (void)HostTensor::of<std::int64_t>({2}, {1, 300}).values<std::uint8_t>(); }),
             Catch::StartsWith("host_tensor_dtype") && Catch::Contains("300 is not between 0 and 255"));
  CHECK_THAT(fails([] { (void)HostTensor::of<std::int64_t>({}, {-1}).item<std::uint64_t>(); }),
             Catch::StartsWith("host_tensor_dtype"));
  CHECK_THAT(fails([] { (void)HostTensor(c64, {1}).item(); }), Catch::StartsWith("host_tensor_dtype"));
}

TEST_CASE("i64 is exact through the integer accessors") {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  HostTensor a = HostTensor::from_ints({2}, {large, std::numeric_limits<std::int64_t>::min()});
  CHECK(a.get_int(0) == large);
  CHECK(a.get_int(1) == std::numeric_limits<std::int64_t>::min());
  CHECK(a.get(0) == 0x1p62);
  CHECK(a.get_number(0) == Number(large));
  a.set_number(1, large);
  CHECK(a.get_int(1) == large);
  CHECK(HostTensor::from_numbers({2}, {large, -1}, i64).get_int(0) == large);
  CHECK(error_label([&] { (void)HostTensor(f32, {1}).get_int(0); }) == "host_tensor_dtype");
}

TEST_CASE("casts follow the rules of the scalar op") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const HostTensor reals = HostTensor::from({7}, {1.9, -1.9, 1e30, -1e30, nan, infinity, 0}, f64);
  const HostTensor ints = reals.cast(i32);
  const std::int64_t expected[] = {1, -1, 2147483647, -2147483648LL, 0, 2147483647, 0};
  for (std::int64_t i = 0; i < 7; ++i) CHECK(ints.get_int(i) == expected[i]);
  CHECK(reals.cast(i64).get_int(2) == std::numeric_limits<std::int64_t>::max());
  const std::int64_t bytes[] = {1, -1, 127, -128, 0, 127, 0}, counts[] = {1, 0, 255, 0, 0, 255, 0};
  for (std::int64_t i = 0; i < 7; ++i) {
    CHECK(reals.cast(i8).get_int(i) == bytes[i]);
    CHECK(reals.cast(u8).get_int(i) == counts[i]);
  }
  CHECK(HostTensor::from_ints({1}, {200}).cast(i8).get_int(0) == -56);
  CHECK(HostTensor::from_ints({1}, {-1}, i8).cast(u8).get_int(0) == 255);
  CHECK(HostTensor::from_ints({1}, {200}, u8).cast(f32).get(0) == 200);
  CHECK(HostTensor::from_ints({1}, {2}, u8).cast(boolean).get(0) == 1);
  const HostTensor flags = reals.cast(boolean);
  CHECK(flags.get_int(4) == 1);
  CHECK(flags.get_int(6) == 0);

  CHECK(HostTensor::from_ints({1}, {(std::int64_t{1} << 32) + 5}).cast(i32).get_int(0) == 5);
  // i64 -> f32 rounds once: through f64 this would give 2^54.
  const std::int64_t tie = (std::int64_t{1} << 54) + (std::int64_t{1} << 30) + 1;
  CHECK(HostTensor::from_ints({1}, {tie}).cast(f32).get(0) == 0x1p54 + 0x1p31);
  CHECK(HostTensor::from({1}, {1.0 / 3}, f64).cast(bf16).get(0) == 0.333984375);
  // So do f64 and i64 -> bf16 and f16: these numbers are close to a tie, to which f32 would round them.
  const HostTensor by_ties = HostTensor::from({3}, {1.0039062500009095, 4.5917748124e-41, 3.3961775e38}, f64);
  const double bf16_numbers[] = {1.0078125, 0x1p-133, 0x1.fep127};
  for (std::int64_t i = 0; i < 3; ++i) CHECK(by_ties.cast(bf16).get(i) == bf16_numbers[i]);
  const HostTensor by_f16_ties = HostTensor::from({3}, {1.0004882812509095, 2.9802322417e-08, 65519.999999999}, f64);
  const double f16_numbers[] = {1.0009765625, 0x1p-24, 65504};
  for (std::int64_t i = 0; i < 3; ++i) CHECK(by_f16_ties.cast(f16).get(i) == f16_numbers[i]);
  const std::int64_t above = (std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1;
  CHECK(HostTensor::from_ints({1}, {above}).cast(bf16).get(0) == 0x1.02p60);
  CHECK(HostTensor::from_ints({1}, {-above}).cast(bf16).get(0) == -0x1.02p60);
  CHECK(HostTensor::from_ints({1}, {above - 1}).cast(bf16).get(0) == 0x1p60);
  CHECK(HostTensor::from_ints({1}, {0x1010001}, i32).cast(bf16).get(0) == 0x1.02p24);
  CHECK(HostTensor::from({1}, {1e5}, f64).cast(f16).get(0) == infinity);

  const HostTensor z = HostTensor::from({1}, {1.5}, f32).cast(c64);
  CHECK(get_complex(z, 0) == std::complex<double>(1.5, 0));
  CHECK(get_complex(z.cast(c128), 0) == std::complex<double>(1.5, 0));
  CHECK(error_label([&] { (void)z.cast(f32); }) == "host_tensor_dtype");
  CHECK(error_label([&] { (void)z.get(0); }) == "host_tensor_dtype");
}

TEST_CASE("invalid shapes and indices are user errors") {
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(error_label([&] { HostTensor(f32, {-1}); }) == "host_tensor_shape");
  CHECK(error_label([&] { HostTensor(f32, {huge, huge}); }) == "host_tensor_shape");
  CHECK(error_label([&] { HostTensor(c128, {huge, std::int64_t{1} << 20}); }) == "host_tensor_shape");
#ifndef __SANITIZE_ADDRESS__
  CHECK(error_label([&] { HostTensor(f32, {huge, 1 << 15}); }) == "out_of_memory");
#endif
  CHECK(error_label([&] { (void)HostTensor(f32, {2}).get(2); }) == "host_tensor_index");
  CHECK(error_label([&] { HostTensor(f32, {2}).set(-1, 0); }) == "host_tensor_index");
  CHECK(error_label([&] { (void)HostTensor::from({2, 2}, {1, 2, 3}); }) == "host_tensor_shape");
  CHECK(error_label([&] { (void)HostTensor(f32, {6}).reshaped({4}); }) == "host_tensor_shape");
  CHECK(HostTensor(f32, {6}).reshaped({2, 3}).shape() == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("small tensors print in full, long ones abbreviated") {
  CHECK(HostTensor::from({2, 2}, {1, 2, 3, 4.5}).to_string() == "f32[2, 2] [[1, 2], [3, 4.5]]");
  CHECK(HostTensor::scalar(0.1).to_string() == "f32[] 0.1");
  CHECK(HostTensor(boolean, {1}).to_string() == "bool[1] [false]");
  CHECK(HostTensor(i64, {100}).to_string(2) == "i64[100] [0, 0, ..., 0, 0]");
  CHECK(HostTensor(c64, {1}).to_string() == "c64[1] [0+0i]");
  CHECK(HostTensor(f32, {2, 0}).to_string() == "f32[2, 0] [[], []]");
}
