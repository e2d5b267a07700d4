#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/builder.h"

/// Einsum equations, independent of the ops that use them.
namespace lathe::ir {

/// An einsum equation resolved for operands of given ranks, with one character per dim. A label is a letter; ellipsis
/// dims are the characters 1, 2, .., counted from the last.
struct EinsumTerms {
  std::vector<std::string> inputs;
  std::string out;
};

/// Reports an error of parse_einsum: label, message, hint. Does not return.
using EinsumFail = std::function<void(std::string_view, const std::string&, std::string_view)>;

/// Parses "ij,jk->ik" with the rules of torch.einsum: blanks are ignored. Without "->", the result has the ellipsis
/// dims, then the labels that occur once, sorted. An ellipsis missing in the result is summed over. Fails with
///   [einsum_syntax] [einsum_operands] [einsum_rank] [einsum_label]
EinsumTerms parse_einsum(std::string_view equation, std::span<const int> ranks, const EinsumFail& fail);

/// Called for a label whose size in an operand differs from its previous size, unless one of them is 1 in another
/// operand.
using EinsumMismatch = std::function<void(char label, int operand, const Dim& size, const Dim& before)>;
/// Returns the size of each label. A size of 1 yields to any other.
std::map<char, Dim> einsum_sizes(const EinsumTerms& terms, std::span<const Shape> shapes,
                                 const EinsumMismatch& mismatch);

/// Returns "label i", or "dim -2 of the ellipsis".
std::string describe_label(char label);

/// Returns the product of two labelled operands, summed over the labels missing in `out`, as a contraction; without
/// summed labels, as a broadcast product. Labels do not repeat within an operand; each is in the other operand or in
/// `out`.
Value multiply_labelled(const Value& a, std::string_view a_labels, const Value& b, std::string_view b_labels,
                        std::string_view out);

}  // namespace lathe::ir
