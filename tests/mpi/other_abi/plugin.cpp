/// The MPI plugin of another version of Lathe, which only has its version function.
extern "C" int lathe_mpi_abi() { return 1'000'000; }
