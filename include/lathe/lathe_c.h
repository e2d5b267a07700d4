#pragma once

/// Lathe from C, and from languages that call C: graphs, compilation, runs, parameters. C99 and C++. The shared
/// library is liblathe_c.so, which exports only the functions below.
///
///   lathe_graph* graph = NULL;
///   if (lathe_graph_load("step.lathe", &graph) != LATHE_OK) puts(lathe_last_error(LATHE_ERROR_TEXT));
///
/// ABI. Functions, values and fields keep their meaning while LATHE_C_ABI_VERSION is the same. Later libraries add
/// functions, values, and fields at the end of structs, whose first field is the size that the caller knows.
///
/// Errors. Functions that return lathe_status catch all exceptions and return 0 on success. NULL is an error for
/// every pointer whose comment does not allow it. After an error, handles and memory are as they were before, except
/// that a run may have updated some states. LLVM ends the process if memory runs out while it generates code.
///
/// Handles are destroyed by the caller, in any order: each keeps alive what it needs.
///
/// Threads. A lathe_graph may be read from any threads, and runs of a lathe_executable are serialized. Use each
/// lathe_options, lathe_call and lathe_parameters in one thread at a time; several handles may refer to one store.
///
/// Text is UTF-8. Strings and arrays that Lathe returns belong to the handle and live as long as it does, unless the
/// function's comment says otherwise.
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LATHE_C_API __attribute__((visibility("default")))
#else
#define LATHE_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(modernize-use-using): it is C.

/// The version of this header's ABI.
#define LATHE_C_ABI_VERSION 1

typedef int32_t lathe_status;
enum {
  LATHE_OK = 0,
  LATHE_USER_ERROR = 1,      ///< a wrong argument, graph, file or option: lathe_last_error(LATHE_ERROR_LABEL)
  LATHE_PARSE_ERROR = 2,     ///< a syntax error in a text, with its line
  LATHE_OUT_OF_MEMORY = 3,   ///< the label is "out_of_memory"
  LATHE_INTERNAL_ERROR = 4,  ///< a bug in Lathe
};

/// Element types. bool is one byte, 0 or 1; c64 and c128 are pairs of f32 and f64.
enum {
  LATHE_F64 = 0,
  LATHE_F32 = 1,
  LATHE_BF16 = 2,
  LATHE_F16 = 3,
  LATHE_I64 = 4,
  LATHE_I32 = 5,
  LATHE_BOOL = 6,
  LATHE_C64 = 7,
  LATHE_C128 = 8,
  LATHE_I8 = 9,
  LATHE_U8 = 10,
};

/// What a named tensor of a graph is.
enum {
  LATHE_INPUT = 0,      ///< given to every run
  LATHE_PARAMETER = 1,  ///< kept in a store, trained
  LATHE_STATE = 2,      ///< kept in a store: moments, counters, caches
  LATHE_OUTPUT = 3,     ///< a result of every run
};

typedef struct lathe_graph lathe_graph;            ///< a computation, not compiled
typedef struct lathe_options lathe_options;        ///< options of lathe_compile()
typedef struct lathe_executable lathe_executable;  ///< a compiled graph
typedef struct lathe_call lathe_call;              ///< the arguments and results of runs of one executable
typedef struct lathe_parameters lathe_parameters;  ///< a reference to a store of parameters and states
struct DLManagedTensor;                            // <dlpack/dlpack.h>

/// Returns the ABI version of the library: compare it with LATHE_C_ABI_VERSION.
LATHE_C_API int32_t lathe_c_abi_version(void);
/// Returns the version of Lathe: "0.1.0".
LATHE_C_API const char* lathe_version(void);

// Errors

enum {
  LATHE_ERROR_TEXT = 0,     ///< all of it, for people: location, message, label, hint
  LATHE_ERROR_MESSAGE = 1,  ///< one line
  LATHE_ERROR_LABEL = 2,    ///< the violated rule: "argument_dtype"
  LATHE_ERROR_HINT = 3,     ///< advice; may be empty
  LATHE_ERROR_FILE = 4,     ///< of the location in a model or text; may be empty
};
/// Returns a part of the error of the last function that failed in this thread; "" if none did, NULL for an unknown
/// part. The text is valid until the next error in this thread. Functions that succeed leave it unchanged.
LATHE_C_API const char* lathe_last_error(int32_t part);
/// Returns the line of that error's location; 0 if it has none.
LATHE_C_API int32_t lathe_last_error_line(void);
/// Returns the status of that error; LATHE_OK if no function failed in this thread.
LATHE_C_API lathe_status lathe_last_error_status(void);

// Types

/// Sets the name of an element type, "f32", and its size in bytes. Either pointer may be NULL.
LATHE_C_API lathe_status lathe_dtype_describe(int32_t dtype, const char** name, size_t* bytes);

/// A named tensor of a graph. Set `struct_size` to sizeof(lathe_tensor_info) before the call.
typedef struct lathe_tensor_info {
  size_t struct_size;
  const char* name;
  int32_t role;
  int32_t dtype;
  int32_t rank;
  int32_t is_updated;       ///< 1 if a run sets this parameter or state
  const int64_t* sizes;     ///< by dim; -1 if known only when the graph runs
  const char* const* dims;  ///< by dim, as text: "n_seq", "d_model=512", "2*n_seq + 1"
  const char* type;         ///< "f32[n_seq, d_model=512]"
} lathe_tensor_info;

/// A dense row-major array that Lathe owns. Set `struct_size` to sizeof(lathe_array) before the call.
typedef struct lathe_array {
  size_t struct_size;
  int32_t dtype;
  int32_t rank;
  const int64_t* shape;
  const void* data;  ///< NULL if there are no elements
  size_t bytes;
} lathe_array;

// Graphs

/// Parses a graph from IR text (docs/ir.md). `file` is its name in errors; NULL: "<text>".
LATHE_C_API lathe_status lathe_graph_parse(const char* text, const char* file, lathe_graph** graph);
/// Reads a graph from a file of IR text.
LATHE_C_API lathe_status lathe_graph_load(const char* path, lathe_graph** graph);
/// Creates the graph that also computes gradients: one more output "grad.NAME" for each name of `wrt`, arguments or
/// named values. No `outputs` (count 0): all float and complex outputs are differentiated. No `wrt`: with respect to
/// all parameters, or to all inputs if there are none. An output that is no scalar needs an input "cot.NAME", which
/// is added. With counts of 0, the arrays may be NULL.
LATHE_C_API lathe_status lathe_graph_differentiate(const lathe_graph* graph, const char* const* outputs,
                                                   size_t output_count, const char* const* wrt, size_t wrt_count,
                                                   lathe_graph** gradient);
/// Creates a training step of a graph that has the scalar output `loss`: forward, backward, and the update of all
/// float parameters in place. `optimizer` is sgd, adam or adamw. Options by name, as in docs/optimizers.md: lr,
/// weight_decay; momentum, nesterov (sgd); beta1, beta2, eps (adam, adamw); clip_norm, accumulate. With a count of 0,
/// the arrays may be NULL.
LATHE_C_API lathe_status lathe_graph_training_step(const lathe_graph* graph, const char* loss, const char* optimizer,
                                                   const char* const* names, const double* values, size_t count,
                                                   lathe_graph** step);
/// Destroys a graph. NULL is allowed, here and for the other functions that destroy.
LATHE_C_API lathe_status lathe_graph_destroy(lathe_graph* graph);
/// Sets `text` to the graph's IR text, with source locations if `locations` is 1, without if 0. The caller frees it
/// with lathe_text_free().
LATHE_C_API lathe_status lathe_graph_print(const lathe_graph* graph, int32_t locations, char** text);
LATHE_C_API void lathe_text_free(char* text);

/// Sets the number of inputs, parameters, states or outputs.
LATHE_C_API lathe_status lathe_graph_count(const lathe_graph* graph, int32_t role, size_t* count);
/// Describes one of them, in the order of the graph.
LATHE_C_API lathe_status lathe_graph_tensor(const lathe_graph* graph, int32_t role, size_t index,
                                            lathe_tensor_info* info);
/// Sets the number of dims whose sizes are known only when the graph runs.
LATHE_C_API lathe_status lathe_graph_dim_count(const lathe_graph* graph, size_t* count);
/// Sets the name of one, in the order of names, and to 1 or 0 whether no argument has this size alone, so that
/// lathe_call_set_dim() may have to give it. `is_given` may be NULL.
LATHE_C_API lathe_status lathe_graph_dim(const lathe_graph* graph, size_t index, const char** name,
                                         int32_t* is_given);

// Compilation

LATHE_C_API lathe_status lathe_options_create(lathe_options** options);
LATHE_C_API lathe_status lathe_options_destroy(lathe_options* options);
/// Sets an option by name:
///   target        host, x86-64-v3, cuda, cuda:sm_90a, ..   default: host
///   threads       that compile and run; 0: one per CPU     default: 0
///   mode          training, or evaluation (no dropout)     default: training
///   cache         folder of compiled code; "": none        default: "": compile again in every process
///   share_states  true: other executables may update the states too; default: false
///   own_threads   true: threads of its own; default: false
///   find_nan      true: a run whose results are not finite is an error that names the op; default: false
///   attention     automatic, off (not fused), required     default: automatic
///   packed_bytes  memory for copies of parameters that are
///                 packed once for the matmuls of all runs  default: 1073741824
LATHE_C_API lathe_status lathe_options_set(lathe_options* options, const char* name, const char* value);
/// Sets the expected maximum of a dim, so that runs of smaller sizes allocate nothing.
LATHE_C_API lathe_status lathe_options_reserve(lathe_options* options, const char* dim, int64_t size);
/// Makes a dim a number: the executable runs at this size only, and passes can choose by it.
LATHE_C_API lathe_status lathe_options_fix(lathe_options* options, const char* dim, int64_t size);
/// Compiles for an existing store of parameters and states. By default the executable has one of its own.
LATHE_C_API lathe_status lathe_options_set_parameters(lathe_options* options, const lathe_parameters* parameters);

/// Compiles a graph. `options` may be NULL: all defaults.
LATHE_C_API lathe_status lathe_compile(const lathe_graph* graph, const lathe_options* options,
                                       lathe_executable** executable);
LATHE_C_API lathe_status lathe_executable_destroy(lathe_executable* executable);
/// Creates a reference to the store that the executable works on.
LATHE_C_API lathe_status lathe_executable_parameters(const lathe_executable* executable,
                                                     lathe_parameters** parameters);
/// Switches to another store.
LATHE_C_API lathe_status lathe_executable_use(lathe_executable* executable, const lathe_parameters* parameters);

// Runs. Shapes have up to 32 dims. Strides are in elements; NULL: row-major. A call reads and writes the caller's
// memory in place at each run, so the memory must live until the call is cleared, destroyed, or given other memory.

LATHE_C_API lathe_status lathe_call_create(const lathe_executable* executable, lathe_call** call);
LATHE_C_API lathe_status lathe_call_destroy(lathe_call* call);
/// Forgets all inputs, outputs, dims and results.
LATHE_C_API lathe_status lathe_call_clear(lathe_call* call);
/// Gives an input by name.
LATHE_C_API lathe_status lathe_call_set_input(lathe_call* call, const char* name, int32_t dtype, int32_t rank,
                                              const int64_t* shape, const int64_t* strides, const void* data);
/// Gives memory for an output. A call has the caller's memory for all outputs, or for none: then it owns the
/// results.
LATHE_C_API lathe_status lathe_call_set_output(lathe_call* call, const char* name, int32_t dtype, int32_t rank,
                                               const int64_t* shape, const int64_t* strides, void* data);
/// Gives a size that no argument determines, such as the used length of a cache.
LATHE_C_API lathe_status lathe_call_set_dim(lathe_call* call, const char* dim, int64_t size);
/// Runs the graph once. Updated parameters and states keep their new values in the store.
LATHE_C_API lathe_status lathe_call_run(lathe_call* call);
/// Describes a result of the last run, which the call owns. The memory is valid until the next run, clear or
/// destroy.
LATHE_C_API lathe_status lathe_call_output(const lathe_call* call, const char* name, lathe_array* array);

// Parameters and states

/// Creates an empty store.
LATHE_C_API lathe_status lathe_parameters_create(lathe_parameters** parameters);
/// Creates a store of the tensors of a .safetensors file, which is mapped: data is read at first use.
LATHE_C_API lathe_status lathe_parameters_load(const char* path, lathe_parameters** parameters);
/// Destroys the reference. The store lives as long as executables and other references use it.
LATHE_C_API lathe_status lathe_parameters_destroy(lathe_parameters* parameters);
/// Writes values to a .safetensors file, atomically: those of `names`, or all if count is 0 and names is NULL.
LATHE_C_API lathe_status lathe_parameters_save(const lathe_parameters* parameters, const char* path,
                                               const char* const* names, size_t count);
/// Lists the names of all values for lathe_parameters_name(), and sets their number.
LATHE_C_API lathe_status lathe_parameters_list(lathe_parameters* parameters, size_t* count);
/// Sets a name of that list, valid until it is made again.
LATHE_C_API lathe_status lathe_parameters_name(const lathe_parameters* parameters, size_t index, const char** name);
/// Sets whether the store has a value of this name: 1 or 0.
LATHE_C_API lathe_status lathe_parameters_contains(const lathe_parameters* parameters, const char* name,
                                                   int32_t* contains);
/// Describes the current value in place, without a copy. Runs on a CPU change it in place. The memory is valid until
/// the value is set or erased.
LATHE_C_API lathe_status lathe_parameters_view(const lathe_parameters* parameters, const char* name,
                                               lathe_array* array);
/// Copies the current value to the caller's memory, which has its dtype and shape.
LATHE_C_API lathe_status lathe_parameters_get(const lathe_parameters* parameters, const char* name, int32_t dtype,
                                              int32_t rank, const int64_t* shape, const int64_t* strides, void* data);
/// Sets a value to a copy of the caller's memory.
LATHE_C_API lathe_status lathe_parameters_set(lathe_parameters* parameters, const char* name, int32_t dtype,
                                              int32_t rank, const int64_t* shape, const int64_t* strides,
                                              const void* data);
LATHE_C_API lathe_status lathe_parameters_erase(lathe_parameters* parameters, const char* name);

/// Sets a parameter or state of a graph to a random or constant value. Element i depends only on the seed, the name
/// and i. Distributions, with the numbers a and b, which are 0 where they are not named:
///   constant a;  normal, mean a, deviation b;  uniform in [a, b)
///   xavier_uniform, xavier_normal, kaiming_normal, gain a
///   automatic: rank >= 2: normal with deviation fan_in^-0.5; otherwise zeros
/// `dim_names` and `dim_sizes` are the sizes that its shape needs; with a count of 0 they may be NULL.
LATHE_C_API lathe_status lathe_parameters_init(lathe_parameters* parameters, const lathe_graph* graph,
                                               const char* name, const char* distribution, double a, double b,
                                               uint64_t seed, const char* const* dim_names, const int64_t* dim_sizes,
                                               size_t dim_count);
/// Sets all states of a graph to their initial values: zeros, and {seed, 0} for the random state "rng".
LATHE_C_API lathe_status lathe_parameters_init_states(lathe_parameters* parameters, const lathe_graph* graph,
                                                      uint64_t seed, const char* const* dim_names,
                                                      const int64_t* dim_sizes, size_t dim_count);

// DLPack: arrays of NumPy, PyTorch, JAX and others, without a copy. A function that takes a tensor owns it from then
// on, also if it fails, and calls its deleter when it is done.

/// Gives an input by name. Memory is read in place at each run.
LATHE_C_API lathe_status lathe_call_set_input_dlpack(lathe_call* call, const char* name,
                                                     struct DLManagedTensor* tensor);
/// Gives memory for an output, which each run writes.
LATHE_C_API lathe_status lathe_call_set_output_dlpack(lathe_call* call, const char* name,
                                                      struct DLManagedTensor* tensor);
/// Moves a result of the last run out of the call. The tensor keeps its memory alive; its consumer calls the deleter.
LATHE_C_API lathe_status lathe_call_take_output_dlpack(lathe_call* call, const char* name,
                                                       struct DLManagedTensor** tensor);
/// Sets a value to a tensor. Memory that is dense, row-major and aligned is used in place, and runs update it there;
/// other strides are copied.
LATHE_C_API lathe_status lathe_parameters_set_dlpack(lathe_parameters* parameters, const char* name,
                                                     struct DLManagedTensor* tensor);
/// Shares the memory of a value: runs update it in place, and the next run sees what its consumer writes. It stays
/// alive after the value is set again or the store is destroyed. A value that a GPU has too is an error.
LATHE_C_API lathe_status lathe_parameters_share_dlpack(const lathe_parameters* parameters, const char* name,
                                                       struct DLManagedTensor** tensor);

// NOLINTEND(modernize-use-using)

#ifdef __cplusplus
}
#endif
