#pragma once

#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// By kernel of the program: whether all its launches are joined (Program::joined), so that it runs only as the
/// phases of another kernel, which contains its code.
std::vector<bool> only_in_phases(const Program& program);

}  // namespace lathe
