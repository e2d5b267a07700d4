#pragma once

#include "passes/program/program.h"

namespace lathe {

/// Throws InternalError ("program @g: ... [label]"), with the buffer, the launch and its source line, if a program
/// violates a rule. Programs are generated, so a violation is a bug in Lathe; this check reports it before it causes
/// wrong results. Linear in the size of the program. Buffers without elements need no writer.
///
/// - program_range: a launch or slot refers to a kernel or buffer that does not exist.
/// - program_arguments: the number of buffers or dims of a launch does not match its kernel's parameters, or a check
///   has no message.
/// - program_dtype: a buffer's dtype differs from the parameter's.
/// - program_alias: two parameters share memory without permission, and one of them is written.
/// - program_constant: an input or a constant is written, or a constant's data does not match its size.
/// - program_loop: the range of a loop is empty, or overlaps with another one without containing it.
/// - program_slice: a slice has another dtype than its buffer or is not within it, or a launch outside of its loop
///   accesses it.
/// - program_alignment: a kernel relies on a multiple of bytes, and a slice may start between them.
/// - program_joined: the phases of a kernel differ from the launches that they replace (verify_joined.h).
/// - program_scratch: two launches share scratch, or a launch reads scratch that it does not write.
/// - program_slot: a slot's buffer has the wrong kind or dtype, or belongs to two slots.
/// - program_collective: a collective is inside a loop, or moves more or fewer elements than its buffers have, or
/// elements that were not
///   written; or a launch that overlaps with it accesses its outputs or writes its inputs.
/// - program_unwritten: a buffer is read or returned before it is written. Each iteration of a loop must write what
/// it
///   reads, unless a launch before the loop wrote it: launches after the loop may not read what only the loop writes,
///   because it may run 0 times, unless the number of its iterations is known and not 0. A buffer of trips * stride
///   elements counts as written after the loop if the loop writes slices of `stride` elements of it.
///   A buffer that launches write only for some sizes (Launch::condition) is read only for these.
/// - program_partial: the launches of a region leave elements of a buffer unwritten, or access it out of bounds
///   (verify_accesses.h).
void verify_program(const Program& program);

}  // namespace lathe
