#pragma once

#include <span>

#include "runtime/library/library_options.h"

namespace lathe {

/// Compiles graphs ahead of time to a C library, which needs neither Lathe nor LLVM. It has functions to initialise
/// states, to check a call and to run each graph; docs/c-library.md describes them. The caller owns all memory and
/// all threads. Results have the same bits as those of compile() for the same target. States of equal names are one
/// state of all graphs, such as the cache that a prompt fills and a step extends.
///
/// Throws UserError
///   [library_prefix]  a prefix or a name of a graph that is not a C identifier; two graphs of one name,
///   [library_target]  no target, a target twice, targets of CPUs and GPUs, or a GPU without its architecture,
///   [library_dims]    an unknown dim without a largest size, or a size of a dim that no graph has,
///   [library_states]  graphs that disagree on the type of a state,
///   [library_values]  an embedded value that is no parameter, that a graph updates, or of another type; an initial
///                     value of a name that no graph has,
/// and those of compile().
EmittedLibrary emit_library(std::span<const LibraryGraph> graphs, const LibraryOptions& options);

}  // namespace lathe
