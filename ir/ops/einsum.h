#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/builder.h"

/// The language of einsum, apart from the ops that speak it.
namespace lathe::ir {

/// An einsum equation resolved for operands of given ranks: one character a dim. A label is a letter; the dims that
/// an ellipsis stands for are the characters 1, 2, .. counted from the last.
struct EinsumTerms {
  std::vector<std::string> inputs;
  std::string out;
};

/// How parse_einsum complains: label, message, hint. It does not return.
using EinsumFail = std::function<void(std::string_view, const std::string&, std::string_view)>;

/// Reads "ij,jk->ik" as torch.einsum does: blanks are ignored; without "->" the result has the ellipsis dims, then
/// the labels that occur once, sorted; an ellipsis left out of the result is summed over. Fails with
///   [einsum_syntax] [einsum_operands] [einsum_rank] [einsum_label]
EinsumTerms parse_einsum(std::string_view equation, std::span<const int> ranks, const EinsumFail& fail);

/// Called for a label whose size in an operand and its size so far are neither equal nor (in another operand) 1.
using EinsumMismatch = std::function<void(char label, int operand, const Dim& size, const Dim& before)>;
/// The size of each label. A size of 1 gives way to another.
std::map<char, Dim> einsum_sizes(const EinsumTerms& terms, std::span<const Shape> shapes,
                                 const EinsumMismatch& mismatch);

/// "label i", or "dim -2 of the ellipsis".
std::string describe_label(char label);

/// The product of two labelled operands summed over the labels that `out` leaves out, as a contraction; where nothing
/// is summed, as a broadcast product. No label repeats in an operand; each is in the other operand or in `out`.
Value multiply_labelled(const Value& a, std::string_view a_labels, const Value& b, std::string_view b_labels,
                        std::string_view out);

}  // namespace lathe::ir
