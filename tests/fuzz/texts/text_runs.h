#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "runtime/compile.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/texts/random_model.h"

/// Graphs over weights, padded batches and comparisons, shared by the checks of all kinds of models.
namespace lathe::fuzz {

/// A graph over weights, compiled or interpreted.
class TextGraph {
 public:
  TextGraph(const ir::Graph& graph, const Parameters& weights, bool is_compiled);
  Tensors run(const Tensors& inputs);

 private:
  ir::Graph graph_;
  Parameters weights_;
  std::optional<Executable> executable_;
};

/// Texts as the rows of a batch, padded on one side.
struct PaddedTexts {
  HostTensor ids, mask;              ///< i64 [B, T]; the mask is 0 for padding
  HostTensor positions;              ///< i64 [B, T]: 0, 1, .. in each text, 0 for padding
  HostTensor lengths;                ///< i64 [B]
  std::vector<std::int64_t> starts;  ///< the column of each text's first token
};
/// `padding`: the id that fills rows; none: random ids.
PaddedTexts padded_texts(const std::vector<Ids>& texts, bool is_left, std::optional<std::int64_t> padding,
                         std::int64_t vocab, std::mt19937& random);

HostTensor ids_tensor(const Ids& ids);  ///< [1, T]

/// Compares row `a` of `got` with row `b` of `want`; a row has the width of the last dim. The difference may be at
/// most 1e-10 of the largest number in `want`'s row.
Complaint differing_row(const HostTensor& got, std::int64_t a, const HostTensor& want, std::int64_t b);

/// Compares the first `count` rows of `want` with those of `got` from `first` on.
Complaint differing_rows(const HostTensor& got, std::int64_t first, const HostTensor& want, std::int64_t count);

/// Formats "3, 7, 12".
std::string sizes_text(const std::vector<Ids>& texts);

Complaint check_decoder(const RandomModel& made, std::mt19937& random);
Complaint check_encoder(const RandomModel& made, std::mt19937& random);
Complaint check_encoder_decoder(const RandomModel& made, std::mt19937& random);

}  // namespace lathe::fuzz
