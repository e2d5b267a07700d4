#pragma once

#include <string>

#include "passes/program/program.h"

namespace lathe {

/// Prints a program: its collectives and loops, its launches by region, its arguments and results, its buffers, and
/// its kernels as loop IR. Equal programs have equal text. parse_program (parse_program.h) reads it.
///
///   program @mha, 12 regions
///   collective 0: all_reduce along data=4, during launches 12..17
///     %31 all_reduce : f32[64] from "%30 sum" to "%31 all_reduce"  loc("step.cpp":14)
///   loop 0: "lstm" launches 3..7, T times  loc("lstm.cpp":9)
///   region 0 rows
///     %4 softmax "weights"  loc("mha.cpp":14)
///   launch 0: kernel 0 @k0_rows(scores, "%4 softmax weights") for B, n_seq
///     as "row reduction", work 8, flops 4*B*n_seq, bytes 8*B*n_seq
///   input scores: f32[B, n_seq] in scores
///   buffer "%4 softmax weights": temporary f32[B*n_seq]  loc("mha.cpp":14)
///   buffer "x at t": slice f32[B*H] of x by loop 0, stride B*H  loc("lstm.cpp":9)
///   // kernel 0
///   kernel @k0_rows(b0: read f32, b1: write f32; d0, d1) {
///     ...
///
/// Buffers are named like ProgramBuffer::name, with a number if several have this name. The bytes of collectives and
/// launches, and the times of collectives, are those of Launch and Collective.
std::string print_program(const Program& program);

/// Returns a kind as text: "input", "state", "output", "constant", "temporary", "scratch" or "slice".
std::string_view name(ProgramBuffer::Kind kind);

}  // namespace lathe
