#include "runtime/ranks/agreement.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace lathe {

namespace {

using Values = std::vector<std::string>;

}  // namespace

void wait_for_ranks(Ranks& ranks) {
  try {
    ranks.gather("");
  } catch (const UserError&) {  // another rank's abort is expected here
  }
}

void throw_together(Ranks& ranks, const UserError& error) {
  wait_for_ranks(ranks);
  throw UserError(error);
}

void require_agreement(Ranks& ranks, const std::vector<Claim>& claims) {
  Values own;
  for (const Claim& claim : claims) own.push_back(claim.value);
  std::vector<Values> given;
  for (const std::string& text : ranks.gather(nlohmann::json(own).dump()))
    given.push_back(nlohmann::json::parse(text).get<Values>());
  for (std::size_t c = 0; c < claims.size(); ++c)
    for (std::size_t r = 1; r < given.size(); ++r)
      if (given[r].at(c) != given[0].at(c))
        throw_together(ranks, UserError(fmt::format("ranks differ in {}: rank 0 has {}, rank {} has {}",
                                                    claims[c].what, given[0][c], r, given[r][c]),
                                        "ranks_differ", claims[c].hint));
}

bool any_of_ranks(Ranks& ranks, bool own) {
  bool any = false;
  for (const std::string& answer : ranks.gather(own ? "1" : "0")) any = any || answer == "1";
  return any;
}

std::string text_of_first(Ranks& ranks, const std::string& own) {
  return ranks.gather(ranks.rank() == 0 ? own : "").front();
}

}  // namespace lathe
