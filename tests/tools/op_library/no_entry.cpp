/// A shared library without LATHE_OP_LIBRARY.
extern "C" int unrelated() { return 1; }
