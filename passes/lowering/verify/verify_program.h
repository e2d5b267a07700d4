#pragma once

#include "passes/program/program.h"

namespace lathe {

/// Throws InternalError ("program @g: ... [label]"), with the buffer, the launch and its source line, where a program
/// breaks a rule. Schedules and the decisions where values lie make programs, so a failure is a defect of Lathe: it
/// ends here instead of in a wrong number. Linear in the program. A buffer without elements needs no writer.
///
/// - program_range: a launch or a slot names a kernel or a buffer that does not exist.
/// - program_arguments: a launch has other buffers or dims than its kernel has parameters, or lacks a check's
/// message.
/// - program_dtype: a buffer's dtype is not the parameter's.
/// - program_alias: two parameters that may not share memory do, and one of them is written.
/// - program_constant: an input or a constant is written, or a constant has other elements than its size says.
/// - program_scratch: scratch belongs to two launches, or is read by one that does not write it.
/// - program_slot: a slot's buffer is of another kind or dtype, or belongs to two slots.
/// - program_exchange: an exchange moves other elements than its buffers have, or such as nothing wrote; a
///   launch beside it touches what it writes, or writes what it reads.
/// - program_unwritten: a buffer is read or returned, and nothing before wrote it.
/// - program_partial: launches of one region write a buffer and leave elements out, or read or write beyond its end
///   (verify_accesses.h).
void verify_program(const Program& program);

}  // namespace lathe
