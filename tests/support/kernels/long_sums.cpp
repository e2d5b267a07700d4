#include "tests/support/kernels/long_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "ir/tensor/text/parser.h"

namespace lathe::test {

namespace {

using Numbers = LongSum::Numbers;

/// Sums f of each element of x [outer, terms, inner] over the terms.
template <class F>
Numbers sums(const Numbers& x, std::size_t outer, std::size_t inner, const F& f) {
  const std::size_t terms = x.size() / outer / inner;
  Numbers found(outer * inner, 0);
  for (std::size_t i = 0; i < x.size(); ++i) found[i / inner / terms * inner + i % inner] += f(x[i]);
  return found;
}

Numbers sums(const Numbers& x, std::size_t outer, std::size_t inner) {
  return sums(x, outer, inner, [](double value) { return value; });
}

Numbers times(Numbers values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

double square(double value) { return value * value; }

/// Returns the cumulative sums along the middle dim of [outer, terms, inner].
Numbers running(const Numbers& x, std::size_t outer, std::size_t inner, bool exclusive, bool reverse) {
  const std::size_t terms = x.size() / outer / inner;
  Numbers found(x.size());
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (std::size_t turn = 0; turn < terms; ++turn) {
        const std::size_t t = reverse ? terms - 1 - turn : turn, at = (o * terms + t) * inner + i;
        found[at] = exclusive ? sum : sum + x[at];
        sum += x[at];
      }
    }
  return found;
}

std::vector<LongSum> plain_sums() {
  return {
      {"sum", {0}, "%y = sum %x {dims=[0]}", [](const Numbers& x) { return sums(x, 1, 1); }},
      {"mean",
       {0},
       "%y = mean %x {dims=[0]}",
       [](const Numbers& x) { return times(sums(x, 1, 1), 1 / static_cast<double>(x.size())); }},
      {"sums of rows", {3, 0}, "%y = sum %x {dims=[1]}", [](const Numbers& x) { return sums(x, 3, 1); }},
      {"sums of few columns", {0, 5}, "%y = sum %x {dims=[0]}", [](const Numbers& x) { return sums(x, 1, 5); }},
      {"sums of many columns", {0, 70}, "%y = sum %x {dims=[0]}", [](const Numbers& x) { return sums(x, 1, 70); }},
      {"sums of columns, in batches",
       {2, 0, 33},
       "%y = sum %x {dims=[1]}",
       [](const Numbers& x) { return sums(x, 2, 33); }},
      {"the gradient of a bias, of a pass over rows",
       {0, 35},
       "%r = sum %x {dims=[1], keepdim=true}\n%d = div %x, %r\n%y = sum %d {dims=[0]}\noutput \"d\" %d",
       [](const Numbers& x) {
         const Numbers rows = sums(x, x.size() / 35, 1);
         Numbers parts = x;
         for (std::size_t i = 0; i < x.size(); ++i) parts[i] /= rows[i / 35];
         return sums(parts, 1, 35);
       }},
  };
}

std::vector<LongSum> functions() {
  return {
      {"the mean square",
       {2, 0},
       "%c = constant {dtype=f32, shape=[], values=[0.4]}\n%d = sub %x, %c\n%q = mul %d, %d\n%y = mean %q {dims=[1]}",
       [](const Numbers& x) {
         return times(sums(x, 2, 1, [](double value) { return square(value - static_cast<double>(0.4F)); }),
                      2 / static_cast<double>(x.size()));
       }},
      {"the square of the norm",
       {0, 3},
       "%q = mul %x, %x\n%y = sum %q {dims=[0, 1]}",
       [](const Numbers& x) { return sums(x, 1, 1, square); }},
      {"the divisors of softmax",
       {2, 0},
       "%y = softmax %x {dim=1}",
       [](const Numbers& x) {
         const Numbers divisors = sums(x, 2, 1, [](double value) { return std::exp(value); });
         Numbers found = x;
         for (std::size_t i = 0; i < x.size(); ++i) found[i] = std::exp(x[i]) / divisors[i / (x.size() / 2)];
         return found;
       }},
      {"logsumexp",
       {2, 0},
       "%y = logsumexp %x {dim=1}",
       [](const Numbers& x) {
         Numbers found = sums(x, 2, 1, [](double value) { return std::exp(value); });
         for (double& value : found) value = std::log(value);
         return found;
       }},
      {"the mean loss of rows",
       {0, 4},
       "%y = cross_entropy %x, %i",
       [](const Numbers& x) {
         double sum = 0;
         for (std::size_t i = 0; i < x.size(); i += 4) {
           double all = 0;
           for (std::size_t c = 0; c < 4; ++c) all += std::exp(x[i + c]);
           sum += std::log(all) - x[i + 1];
         }
         return Numbers{sum / static_cast<double>(x.size() / 4)};
       }},
      {"updates of one row",
       {0, 20},
       "%s = scatter_add %i, %x {size=3}\n%y = slice %s {dim=0, start=1, stop=2}",
       [](const Numbers& x) { return sums(x, 1, 20); }},
      {"updates of one element",
       {0},
       "%s = scatter_add %i, %x {size=3}\n%y = slice %s {dim=0, start=1, stop=2}",
       [](const Numbers& x) { return sums(x, 1, 1); }},
  };
}

std::vector<LongSum> scans() {
  const auto scan = [](std::string name, std::vector<std::int64_t> dims, int dim, bool exclusive, bool reverse) {
    const std::size_t outer = dim == 0 ? 1 : static_cast<std::size_t>(dims[0]),
                      inner = static_cast<std::size_t>(dim + 1 < std::ssize(dims) ? dims.back() : 1);
    const auto flag = [](bool is) { return is ? "true" : "false"; };
    return LongSum{std::move(name), std::move(dims),
                   "%y = cumsum %x {dim=" + std::to_string(dim) + ", exclusive=" + flag(exclusive) +
                       ", reverse=" + flag(reverse) + "}",
                   [=](const Numbers& x) { return running(x, outer, inner, exclusive, reverse); }};
  };
  const auto recurrence = [](std::string name, std::vector<std::int64_t> dims, int dim, bool reverse) {
    const std::size_t outer = dim == 0 ? 1 : static_cast<std::size_t>(dims[0]),
                      inner = static_cast<std::size_t>(dim + 1 < std::ssize(dims) ? dims.back() : 1);
    return LongSum{std::move(name), std::move(dims),
                   "%ones = div %x, %x\n%y = linear_recurrence %ones, %x {dim=" + std::to_string(dim) +
                       ", reverse=" + (reverse ? "true" : "false") + "}",
                   [=](const Numbers& x) { return running(x, outer, inner, false, reverse); }};
  };
  return {recurrence("a recurrence with factors of 1", {0}, 0, false),
          recurrence("a recurrence of rows in reverse", {2, 0}, 1, true),
          recurrence("a recurrence of columns", {0, 19}, 0, false),
          scan("cumsum", {0}, 0, false, false),
          scan("cumsum of rows, without the element", {2, 0}, 1, true, false),
          scan("the gradient of cumsum", {0}, 0, false, true),
          scan("cumsum of columns", {0, 19}, 0, false, false),
          scan("the gradient of cumsum of columns, without the element", {0, 19}, 0, true, true)};
}

/// Returns the products of the columns i < left and j < right of x [terms, columns].
Numbers column_products(const Numbers& x, std::size_t columns, std::size_t left, std::size_t right) {
  Numbers found(left * right, 0);
  for (std::size_t row = 0; row < x.size(); row += columns)
    for (std::size_t i = 0; i < left; ++i)
      for (std::size_t j = 0; j < right; ++j) found[i * right + j] += x[row + i] * x[row + j];
  return found;
}

}  // namespace

ir::Graph LongSum::graph(DType dtype) const {
  std::string shape;
  for (const std::int64_t dim : dims)
    shape += (shape.empty() ? "" : ", ") + (dim == 0 ? std::string("n") : std::to_string(dim));
  const bool indices = body.find("%i") != std::string::npos;
  return ir::parse_graph("graph @long(input %given: " + std::string(lathe::name(dtype)) + "[" + shape + "]" +
                             (indices ? ", input %i: i64[n]" : "") + ") {\n%x = cast %given {dtype=f32}\n" + body +
                             "\noutput \"y\" %y\n}",
                         name);
}

Tensors LongSum::arguments(DType dtype, std::int64_t n, const std::function<double(std::int64_t)>& term) const {
  std::vector<std::int64_t> shape = dims;
  std::replace(shape.begin(), shape.end(), std::int64_t{0}, n);
  Tensors found;
  HostTensor& x = found.emplace("given", HostTensor(dtype, shape)).first->second;
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, term(i));
  if (body.find("%i") == std::string::npos) return found;
  HostTensor& ones = found.emplace("i", HostTensor(i64, {n})).first->second;
  for (std::int64_t i = 0; i < n; ++i) ones.set_int(i, 1);
  return found;
}

double LongSum::error_of(const Tensors& results, const Tensors& arguments) const {
  const HostTensor &x = arguments.at("given"), &found = results.at("y");
  Numbers values(static_cast<std::size_t>(x.numel()));
  for (std::int64_t i = 0; i < x.numel(); ++i) values[static_cast<std::size_t>(i)] = x.get(i);
  const Numbers wanted = expected(values);
  if (std::ssize(wanted) != found.numel()) return std::numeric_limits<double>::infinity();
  double error = 0;
  for (std::int64_t i = 0; i < found.numel(); ++i) {
    const double want = wanted[static_cast<std::size_t>(i)], difference = std::abs(found.get(i) - want);
    error = std::max(error,
                     want == 0 || std::isnan(difference) ? (difference == 0 ? 0 : 1) : difference / std::abs(want));
  }
  return error;
}

const std::vector<LongSum>& long_gemvs() {
  const auto first_columns = [](int columns) {
    return fmt::format("%l = slice %x {{dim=1, start=0, stop={}}}\n%y = contract %l, %x {{spec=\"ki,kj->ij\"}}",
                       columns);
  };
  static const std::vector<LongSum> all = {
      {"a dot product",
       {0},
       "%y = contract %x, %x {spec=\"k,k->\"}",
       [](const Numbers& x) { return sums(x, 1, 1, square); }},
      {"two rows along k",
       {2, 0},
       "%y = contract %x, %x {spec=\"ik,jk->ij\"}",
       [](const Numbers& x) {
         const std::size_t terms = x.size() / 2;
         Numbers columns;
         for (std::size_t k = 0; k < terms; ++k)
           for (std::size_t row = 0; row < 2; ++row) columns.push_back(x[row * terms + k]);
         return column_products(columns, 2, 2, 2);
       }},
      {"a row times many columns",
       {0, 70},
       first_columns(1),
       [](const Numbers& x) { return column_products(x, 70, 1, 70); }},
      {"two rows times columns",
       {0, 33},
       first_columns(2),
       [](const Numbers& x) { return column_products(x, 33, 2, 33); }},
  };
  return all;
}

const std::vector<LongSum>& long_sums() {
  static const std::vector<LongSum> all = [] {
    std::vector<LongSum> found = plain_sums();
    for (const std::vector<LongSum>& more : {functions(), scans()})
      found.insert(found.end(), more.begin(), more.end());
    return found;
  }();
  return all;
}

}  // namespace lathe::test
