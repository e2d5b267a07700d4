#pragma once

/* A pool of threads for libraries that `lathe compile` wrote:

     lathe_pool pool;
     int error = lathe_pool_start(&pool, 0);  // 0: one thread per CPU; returns 0 or an error of errno.h
     call.workers = &pool.workers;
     ...
     lathe_pool_stop(&pool);

   Each thread has a contiguous share of the indexes of a loop, the same one in all loops of equal length, so that its
   caches keep the data. A thread that has finished its share takes indexes from the ends of other shares. Idle
   threads spin for about 20 microseconds, then sleep. The caller is one of the threads. Nothing is allocated after
   the start. A loop runs on its caller alone if the pool is busy with another one, and in the child of a fork, which
   has none of the threads.

   Needs C99 or C++, POSIX threads, and the atomic operations of GCC and Clang. Link with -pthread. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__) && (defined(_DEFAULT_SOURCE) || defined(_GNU_SOURCE) || defined(_BSD_SOURCE))
#include <sys/syscall.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LATHE_WORKERS
#define LATHE_WORKERS
/* Threads of the caller. parallel_for(context, count, task, argument) calls task(argument, i, worker) once for each i
   in [0, count), in any order, and returns when all calls have returned. `worker` is in [0, lathe_workers.count), and
   differs between calls that run at the same time. lathe_pool.h has such a function. */
typedef struct lathe_workers {
  void (*parallel_for)(void* context, int64_t count, void (*task)(void* argument, int64_t i, int32_t worker),
                       void* argument);
  void* context;
  int32_t count;
} lathe_workers;
#endif

/* A thread, on cache lines of its own. */
typedef struct lathe_pool_thread {
  uint64_t unclaimed; /* chunks of its share: from the low half of the word up to the high half */
  struct lathe_pool* pool;
  pthread_t handle;
  int32_t index;
  char padding[128];
} lathe_pool_thread;

typedef struct lathe_pool {
  lathe_workers workers;
  lathe_pool_thread* threads; /* the first is the caller */
  int32_t spins;              /* before sleeping */
  pid_t process;              /* that has the threads */
  /* The loop. It changes only while no chunk is unclaimed. */
  int64_t count, grain;
  void (*task)(void* argument, int64_t i, int32_t worker);
  void* argument;
  char before_unfinished[128];
  int64_t unfinished; /* chunks */
  char before_call[128];
  uint32_t call; /* number of the loop */
  char before_state[128];
  int32_t sleeping, caller_sleeps, busy, stopping;
  pthread_mutex_t mutex;
  pthread_cond_t called, finished;
} lathe_pool;

static inline void lathe_pool_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* Returns the first chunk of the thread's own share, else the last of another share; -1 if all are claimed. */
static inline int64_t lathe_pool_claim(lathe_pool* pool, int32_t self) {
  for (int32_t i = 0; i < pool->workers.count; ++i) {
    uint64_t* share = &pool->threads[(self + i) % pool->workers.count].unclaimed;
    uint64_t seen = __atomic_load_n(share, __ATOMIC_RELAXED);
    while ((seen & 0xffffffffu) < seen >> 32) {
      const uint64_t left = i == 0 ? seen + 1 : seen - ((uint64_t)1 << 32);
      if (__atomic_compare_exchange_n(share, &seen, left, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return (int64_t)(i == 0 ? seen & 0xffffffffu : left >> 32);
    }
  }
  return -1;
}

static inline void lathe_pool_work(lathe_pool* pool, int32_t self) {
  int64_t finished = 0;
  for (int64_t chunk = lathe_pool_claim(pool, self); chunk >= 0; chunk = lathe_pool_claim(pool, self), ++finished) {
    const int64_t begin = chunk * pool->grain, rest = pool->count - begin;
    for (int64_t i = 0; i < rest && i < pool->grain; ++i) pool->task(pool->argument, begin + i, self);
  }
  if (finished == 0 || __atomic_sub_fetch(&pool->unfinished, finished, __ATOMIC_SEQ_CST) != 0) return;
  if (!__atomic_load_n(&pool->caller_sleeps, __ATOMIC_SEQ_CST)) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_signal(&pool->finished);
  pthread_mutex_unlock(&pool->mutex);
}

static inline void* lathe_pool_main(void* argument) {
  lathe_pool_thread* thread = (lathe_pool_thread*)argument;
  lathe_pool* pool = thread->pool;
  for (uint32_t seen = 0;;) {
    for (int32_t i = 0; i < pool->spins && __atomic_load_n(&pool->call, __ATOMIC_RELAXED) == seen; ++i)
      lathe_pool_relax();
    if (__atomic_load_n(&pool->call, __ATOMIC_ACQUIRE) == seen) {
      pthread_mutex_lock(&pool->mutex);
      __atomic_add_fetch(&pool->sleeping, 1, __ATOMIC_SEQ_CST);
      while (__atomic_load_n(&pool->call, __ATOMIC_SEQ_CST) == seen) pthread_cond_wait(&pool->called, &pool->mutex);
      __atomic_sub_fetch(&pool->sleeping, 1, __ATOMIC_SEQ_CST);
      pthread_mutex_unlock(&pool->mutex);
    }
    if (__atomic_load_n(&pool->stopping, __ATOMIC_SEQ_CST)) return NULL;
    seen = __atomic_load_n(&pool->call, __ATOMIC_SEQ_CST);
    lathe_pool_work(pool, thread->index);
  }
}

/* Starts a loop, and wakes as many threads as can help the caller. */
static inline void lathe_pool_call(lathe_pool* pool, int64_t helpers) {
  __atomic_add_fetch(&pool->call, 1, __ATOMIC_SEQ_CST);
  const int32_t sleeping = __atomic_load_n(&pool->sleeping, __ATOMIC_SEQ_CST);
  if (sleeping == 0) return;
  pthread_mutex_lock(&pool->mutex); /* so that a thread that is about to sleep does */
  pthread_mutex_unlock(&pool->mutex);
  if (helpers >= sleeping) pthread_cond_broadcast(&pool->called);
  for (; helpers > 0 && helpers < sleeping; --helpers) pthread_cond_signal(&pool->called);
}

/* lathe_workers.parallel_for */
static inline void lathe_pool_run(void* context, int64_t count,
                                  void (*task)(void* argument, int64_t i, int32_t worker), void* argument) {
  lathe_pool* pool = (lathe_pool*)context;
  const int64_t threads = pool->workers.count, grain = (count >> 31) + 1, chunks = (count + grain - 1) / grain;
  if (count <= 1 || threads == 1 || pool->process != getpid() ||
      __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
    for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
    return;
  }
  pool->count = count, pool->grain = grain, pool->task = task, pool->argument = argument;
  __atomic_store_n(&pool->unfinished, chunks, __ATOMIC_RELAXED);
  for (int64_t t = 0; t < threads; ++t)
    __atomic_store_n(&pool->threads[t].unclaimed,
                     (uint64_t)(chunks * t / threads) | (uint64_t)(chunks * (t + 1) / threads) << 32,
                     __ATOMIC_RELEASE);
  lathe_pool_call(pool, chunks - 1);
  lathe_pool_work(pool, 0);
  for (int32_t i = 0; i < pool->spins && __atomic_load_n(&pool->unfinished, __ATOMIC_ACQUIRE) != 0; ++i)
    lathe_pool_relax();
  if (__atomic_load_n(&pool->unfinished, __ATOMIC_ACQUIRE) != 0) {
    pthread_mutex_lock(&pool->mutex);
    __atomic_store_n(&pool->caller_sleeps, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pool->unfinished, __ATOMIC_SEQ_CST) != 0)
      pthread_cond_wait(&pool->finished, &pool->mutex);
    __atomic_store_n(&pool->caller_sleeps, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->mutex);
  }
  __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
}

/* Returns the number of CPUs that the process may use. In strict C modes (-std=c99) without _DEFAULT_SOURCE it is the
   number of CPUs of the machine. */
static inline int32_t lathe_pool_cpus(void) {
#ifdef SYS_sched_getaffinity
  unsigned long mask[1024 / sizeof(unsigned long)];
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  int32_t usable = 0;
  for (long i = 0; i < bytes / (long)sizeof(unsigned long); ++i) usable += (int32_t)__builtin_popcountl(mask[i]);
  if (usable > 0) return usable;
#endif
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  return cpus > 0 ? (int32_t)cpus : 1;
}

/* Ends the threads. No call may be running. */
static inline void lathe_pool_stop(lathe_pool* pool) {
  if (pool->process == getpid()) {
    __atomic_store_n(&pool->stopping, 1, __ATOMIC_SEQ_CST);
    lathe_pool_call(pool, pool->workers.count);
    for (int32_t i = 1; i < pool->workers.count; ++i) pthread_join(pool->threads[i].handle, NULL);
    pthread_cond_destroy(&pool->called);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->mutex);
  }
  free(pool->threads);
  memset(pool, 0, sizeof *pool);
}

/* Starts a pool of `threads` threads, the caller's among them; 0: one per CPU, else from 1 to 1024. Returns 0 or an
   error of errno.h. The pool must not move while it is in use. */
static inline int lathe_pool_start(lathe_pool* pool, int32_t threads) {
  const int32_t cpus = lathe_pool_cpus();
  memset(pool, 0, sizeof *pool);
  if (threads == 0) threads = cpus < 1024 ? cpus : 1024;
  if (threads < 0 || threads > 1024) return EINVAL;
  pool->threads = (lathe_pool_thread*)calloc((size_t)threads, sizeof(lathe_pool_thread));
  if (pool->threads == NULL) return ENOMEM;
  pool->workers.parallel_for = lathe_pool_run;
  pool->workers.context = pool;
  pool->spins = threads <= cpus ? 1000 : 0;
  pool->process = getpid();
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->called, NULL);
  pthread_cond_init(&pool->finished, NULL);
#ifdef SIG_SETMASK /* the threads get no signals: those are for the program's own threads */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  int error = 0;
  int32_t started = 1;
  pool->workers.count = threads;
  for (; started < threads && error == 0; ++started) {
    lathe_pool_thread* thread = &pool->threads[started];
    thread->pool = pool, thread->index = started;
    error = pthread_create(&thread->handle, NULL, lathe_pool_main, thread);
  }
#ifdef SIG_SETMASK
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
  if (error == 0) return 0;
  pool->workers.count = started - 1; /* the last one did not start */
  lathe_pool_stop(pool);
  return error;
}

#ifdef __cplusplus
}
#endif
