#pragma once

/* Memory for libraries that `lathe compile` wrote: workspaces and states in large pages, and mapped files.

     void *workspace = lathe_memory_get(bytes);            // NULL: the system has not enough
     lathe_memory_release(workspace, bytes);
     void *file = lathe_file_map("model.safetensors", &bytes);  // NULL: errno says why
     lathe_file_unmap(file, bytes);

   Needs C99 or C++, and POSIX. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bytes that are mapped for a request: whole pages. */
static inline size_t lathe_memory_size(size_t bytes, size_t page) {
  return (bytes / page + (bytes % page != 0)) * page;
}

/* Returns zeroed memory that starts on a page; NULL if there is not enough. 2 MiB or more start at a multiple of 2
   MiB, and Linux is asked for pages of that size: with small ones, large steps wait for address translation. In
   strict C modes (-std=c99) that request needs _DEFAULT_SOURCE. */
static inline void* lathe_memory_get(size_t bytes) {
  const size_t huge = (size_t)1 << 21, unit = bytes >= huge ? huge : 4096;
  if (bytes > SIZE_MAX / 2) return NULL;
  const size_t size = lathe_memory_size(bytes > 0 ? bytes : 1, unit), extra = unit == huge ? huge : 0;
#ifdef MAP_ANONYMOUS
  char* start = (char*)mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#else
  const int zero = open("/dev/zero", O_RDWR);
  if (zero < 0) return NULL;
  char* start = (char*)mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
  close(zero);
#endif
  if ((void*)start == MAP_FAILED) return NULL;
  if (extra > 0) { /* keep the part that starts at a multiple of a huge page */
    const size_t before = (huge - (uintptr_t)start % huge) % huge;
    if (before > 0) munmap(start, before);
    start += before;
    if (extra > before) munmap(start + size, extra - before);
#ifdef MADV_HUGEPAGE
    (void)madvise(start, size, MADV_HUGEPAGE); /* only a hint */
#endif
  }
  return start;
}

/* Releases memory of lathe_memory_get() with the same size; NULL is ignored. */
static inline void lathe_memory_release(void* memory, size_t bytes) {
  const size_t huge = (size_t)1 << 21;
  if (memory != NULL) munmap(memory, lathe_memory_size(bytes > 0 ? bytes : 1, bytes >= huge ? huge : 4096));
}

/* Maps a file, and returns its first byte; NULL, with errno set, if it cannot. Pages are read when they are used. The
   program may write to the memory, which does not change the file. */
static inline void* lathe_file_map(const char* path, size_t* bytes) {
  struct stat status;
  void* start = NULL;
  const int file = open(path, O_RDONLY);
  if (file < 0) return NULL;
  if (fstat(file, &status) == 0) {
    *bytes = (size_t)status.st_size;
    start = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED) start = NULL;
  }
  const int error = errno;
  close(file);
  errno = error;
  return start;
}

static inline void lathe_file_unmap(void* file, size_t bytes) {
  if (file != NULL) munmap(file, bytes);
}

#ifdef __cplusplus
}
#endif
