/// The MPI plugin of another Lathe, as far as anybody asks it.
extern "C" int lathe_mpi_abi() { return 1'000'000; }
