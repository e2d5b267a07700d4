#pragma once

/// Several processes in a mesh: communication, split dims, and whole tensors of their parts.
#include "ir/mesh/mesh.h"
#include "runtime/ranks/mpi/mpi_communicator.h"
#include "runtime/ranks/thread_communicator.h"
#include "runtime/ranks/whole_tensors.h"
