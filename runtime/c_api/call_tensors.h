#pragma once

#include <string>

#include "runtime/c_api/handles.h"

namespace lathe::c_api {

/// Return the name of an input or output of the call's executable. Throw UserError [null_argument],
/// [argument_unknown], [output_unknown].
std::string input_name(const lathe_call& call, const char* name);
std::string output_name(const lathe_call& call, const char* name);

/// Returns the result of this name, which the last run of the call left there. Throws UserError [null_argument],
/// [output_unknown], and [output_unset] if the call has no such result now.
Tensors::const_iterator owned_result(const lathe_call& call, const char* name);

}  // namespace lathe::c_api
