#pragma once

#include <string>

#include "passes/fusion/fusion.h"

namespace lathe::test {

/// Returns the name of the first member that differs, or nothing for equal plans. FusionPlan::attentions, which only
/// reports use, is not compared.
std::string plan_difference(const FusionPlan& a, const FusionPlan& b);

}  // namespace lathe::test
