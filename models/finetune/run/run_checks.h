#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

/// Checks of the options of training runs.
namespace lathe {

/// Throws UserError [train_options] for a number below `least`.
void require_at_least(std::string_view option, std::int64_t number, std::int64_t least);
/// Throws UserError [train_options] for a number that is negative, infinite or NaN.
void require_finite(std::string_view option, double number);
/// Throws UserError [train_options] unless a number of passes over the data is positive and finite.
void require_epochs(double epochs);
/// Throws UserError [finetune_valid] if both a file and a share of the data are given for validation, or a share that
/// is not between 0 and 1. 0 is no share.
void require_one_validation(const std::filesystem::path& file, double share);

}  // namespace lathe
