#pragma once

/* Reads .safetensors files in memory, such as mapped ones (lathe_memory.h), whoever wrote them. Nothing is allocated.

     lathe_safetensors file, states;
     if (lathe_safetensors_open(&file, bytes, size)) puts(file.message);
     const int64_t shape[] = {112, 32};
     const float *table = lathe_safetensors_find(&file, "wte", "F32", 2, shape);
     if (table == NULL) puts(file.message);

   The states of a library are such a file too. This copies the ones that a file has, by name:

     size_t bytes;
     const char *header = gpt_file_header(&bytes);
     lathe_safetensors_layout(&states, header, bytes, block, GPT_FILE_BYTES);
     if (lathe_safetensors_copy(&states, &file) != states.count) puts(file.message);

   Needs C99 or C++, and a CPU that stores the low byte of a number first. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lathe_safetensors {
  const char* header; /* JSON */
  size_t header_bytes;
  unsigned char* data;
  size_t data_bytes;
  size_t cursor;     /* in the header: where the next search starts */
  int64_t count;     /* tensors */
  char message[256]; /* what is wrong, after a function has failed */
} lathe_safetensors;

/* A tensor of a file. */
typedef struct lathe_tensor {
  char name[512];
  char dtype[16]; /* such as F32, BF16, I64 */
  int32_t rank;
  int64_t shape[16];
  unsigned char* data;
  size_t bytes;
} lathe_tensor;

static inline int lathe_safetensors_fail(lathe_safetensors* file, const char* what, const char* name) {
  snprintf(file->message, sizeof file->message, "%s%s%.120s", what, name[0] ? ": " : "", name);
  return -1;
}

static inline char lathe_json_peek(lathe_safetensors* file) {
  while (file->cursor < file->header_bytes && strchr(" \t\r\n", file->header[file->cursor]) != NULL &&
         file->header[file->cursor] != 0)
    ++file->cursor;
  return file->cursor < file->header_bytes ? file->header[file->cursor] : 0;
}

/* Reads one character if it comes next. */
static inline int lathe_json_take(lathe_safetensors* file, char c) {
  if (lathe_json_peek(file) != c) return 0;
  ++file->cursor;
  return 1;
}

/* Reads four hexadecimal digits; -1 without them. */
static inline int32_t lathe_json_hex(lathe_safetensors* file) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i, ++file->cursor) {
    const char c = file->cursor < file->header_bytes ? file->header[file->cursor] : 0;
    const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* Reads the rest of an escape sequence, as UTF-8. Returns its bytes; 0 if it is wrong. */
static inline size_t lathe_json_escape(lathe_safetensors* file, char utf8[4]) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char c = file->cursor < file->header_bytes ? file->header[file->cursor++] : 0;
  const char* known = c != 0 ? strchr(from, c) : NULL;
  if (known != NULL) {
    utf8[0] = to[known - from];
    return 1;
  }
  int32_t code = c == 'u' ? lathe_json_hex(file) : -1;
  if (code >= 0xd800 && code < 0xdc00) { /* the first half of a pair */
    if (!(file->header_bytes - file->cursor > 2 && memcmp(file->header + file->cursor, "\\u", 2) == 0)) return 0;
    file->cursor += 2;
    const int32_t second = lathe_json_hex(file);
    if (second < 0xdc00 || second >= 0xe000) return 0;
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  } else if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) {
    return 0;
  }
  const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = bytes - 1; i > 0; --i, code >>= 6) utf8[i] = (char)(0x80 | (code & 0x3f));
  utf8[0] = (char)(bytes == 1 ? code : (0xf00 >> bytes & 0xff) | code);
  return bytes;
}

/* Reads a string of at most `size` - 1 bytes. */
static inline int lathe_json_string(lathe_safetensors* file, char* text, size_t size) {
  size_t length = 0;
  if (!lathe_json_take(file, '"')) return 0;
  while (file->cursor < file->header_bytes) {
    char utf8[4] = {file->header[file->cursor++], 0, 0, 0};
    if (utf8[0] == '"') {
      text[length] = 0;
      return 1;
    }
    if ((unsigned char)utf8[0] < 0x20) return 0;
    const size_t bytes = utf8[0] == '\\' ? lathe_json_escape(file, utf8) : 1;
    if (bytes == 0 || bytes >= size - length) return 0;
    memcpy(text + length, utf8, bytes);
    length += bytes;
  }
  return 0;
}

/* Reads [1, 2, ..] of at most `most` numbers, each at least 0. Returns how many; -1 if it is something else. */
static inline int32_t lathe_json_numbers(lathe_safetensors* file, int64_t* numbers, int32_t most) {
  int32_t count = 0;
  if (!lathe_json_take(file, '[')) return -1;
  if (lathe_json_take(file, ']')) return 0;
  do {
    char c = lathe_json_peek(file);
    if (count == most || c < '0' || c > '9') return -1;
    int64_t value = 0;
    for (; c >= '0' && c <= '9'; c = ++file->cursor < file->header_bytes ? file->header[file->cursor] : 0) {
      if (value > (INT64_MAX - 9) / 10) return -1;
      value = value * 10 + (c - '0');
    }
    numbers[count++] = value;
  } while (lathe_json_take(file, ','));
  return lathe_json_take(file, ']') ? count : -1;
}

/* Returns the bytes of an element; 0 for a dtype that this header does not know. */
static inline size_t lathe_dtype_bytes(const char* dtype) {
  static const char* const names[] = {"F32", "BF16", "F16", "I64", "F64", "I32",     "I16",     "I8",
                                      "U8",  "U16",  "U32", "U64", "C64", "F8_E4M3", "F8_E5M2", "BOOL"};
  static const size_t bytes[] = {4, 2, 2, 8, 8, 4, 2, 1, 1, 2, 4, 8, 8, 1, 1, 1};
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; ++i)
    if (strcmp(dtype, names[i]) == 0) return bytes[i];
  return 0;
}

/* Reads the value of a tensor: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}. */
static inline int lathe_safetensors_value(lathe_safetensors* file, lathe_tensor* tensor) {
  int64_t offsets[2] = {0, 0};
  int found = 0;
  if (!lathe_json_take(file, '{'))
    return lathe_safetensors_fail(file, "the header is wrong at the tensor", tensor->name);
  do {
    char key[16];
    int32_t numbers = 0;
    if (!lathe_json_string(file, key, sizeof key) || !lathe_json_take(file, ':'))
      return lathe_safetensors_fail(file, "the header is wrong at the tensor", tensor->name);
    if (strcmp(key, "dtype") == 0)
      found |= lathe_json_string(file, tensor->dtype, sizeof tensor->dtype) ? 1 : 0;
    else if (strcmp(key, "shape") == 0)
      found |= (tensor->rank = lathe_json_numbers(file, tensor->shape, 16)) >= 0 ? 2 : 0;
    else if (strcmp(key, "data_offsets") == 0)
      found |= (numbers = lathe_json_numbers(file, offsets, 2)) == 2 ? 4 : 0;
    else
      return lathe_safetensors_fail(file, "the header has an unknown key at the tensor", tensor->name);
  } while (lathe_json_take(file, ','));
  if (found != 7 || !lathe_json_take(file, '}'))
    return lathe_safetensors_fail(file, "the header has no dtype, shape and data_offsets for the tensor",
                                  tensor->name);
  if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > file->data_bytes)
    return lathe_safetensors_fail(file, "the data of a tensor is outside of the file", tensor->name);
  tensor->data = file->data + offsets[0];
  tensor->bytes = (size_t)(offsets[1] - offsets[0]);
  uint64_t bytes = lathe_dtype_bytes(tensor->dtype);
  if (bytes == 0) return 1;
  int is_empty = 0;
  for (int32_t i = 0; i < tensor->rank; ++i) is_empty |= tensor->shape[i] == 0;
  for (int32_t i = 0; i < tensor->rank && !is_empty; ++i) {
    if ((uint64_t)tensor->shape[i] > UINT64_MAX / bytes)
      return lathe_safetensors_fail(file, "the shape of a tensor is too large", tensor->name);
    bytes *= (uint64_t)tensor->shape[i];
  }
  if (tensor->bytes != (is_empty ? 0 : bytes))
    return lathe_safetensors_fail(file, "the data of a tensor has not the size of its shape", tensor->name);
  return 1;
}

/* Reads the next tensor of the header, after file->cursor; 0 starts at the first one. Returns 1, 0 at the end of the
   header, or -1 if the header is wrong. */
static inline int lathe_safetensors_next(lathe_safetensors* file, lathe_tensor* tensor) {
  const int is_first = file->cursor == 0;
  tensor->name[0] = tensor->dtype[0] = 0;
  if (is_first && !lathe_json_take(file, '{'))
    return lathe_safetensors_fail(file, "the header is no JSON object", "");
  for (int is_entry = is_first;; is_entry = 0) {
    if (lathe_json_take(file, '}'))
      return lathe_json_peek(file) == 0 && file->cursor == file->header_bytes
                 ? 0
                 : lathe_safetensors_fail(file, "the header has text after its end", "");
    if (!is_entry && !lathe_json_take(file, ',')) break;
    if (!lathe_json_string(file, tensor->name, sizeof tensor->name) || !lathe_json_take(file, ':')) break;
    if (strcmp(tensor->name, "__metadata__") != 0) return lathe_safetensors_value(file, tensor);
    if (!lathe_json_take(file, '{')) break; /* texts by name, of which the program makes nothing */
    while (!lathe_json_take(file, '}')) {
      for (int part = 0; part < 2; ++part) {
        if (!lathe_json_take(file, '"'))
          return lathe_safetensors_fail(file, "the metadata of the header is wrong", "");
        for (char c = 0; file->cursor < file->header_bytes && c != '"';) {
          c = file->header[file->cursor++];
          if (c == '\\' && file->cursor < file->header_bytes) ++file->cursor;
        }
        if (part == 0 && !lathe_json_take(file, ':'))
          return lathe_safetensors_fail(file, "the metadata of the header is wrong", "");
      }
      if (!lathe_json_take(file, ',') && lathe_json_peek(file) != '}')
        return lathe_safetensors_fail(file, "the metadata of the header is wrong", "");
    }
  }
  return lathe_safetensors_fail(file, "the header is wrong after the tensor", tensor->name);
}

/* Takes a header and the memory of its data, such as the states of a library. Checks all tensors. Returns 0, or -1
   and sets file->message. */
static inline int lathe_safetensors_layout(lathe_safetensors* file, const char* header, size_t header_bytes,
                                           void* data, size_t data_bytes) {
  lathe_tensor tensor;
  int more = 0;
  memset(file, 0, sizeof *file);
  if (header_bytes >= 8 && header != NULL) file->header = header + 8, file->header_bytes = header_bytes - 8;
  file->data = (unsigned char*)data, file->data_bytes = data_bytes;
  while ((more = lathe_safetensors_next(file, &tensor)) > 0) ++file->count;
  file->cursor = 0;
  return more;
}

/* Takes a file of `size` bytes. Checks all tensors. Returns 0, or -1 and sets file->message. */
static inline int lathe_safetensors_open(lathe_safetensors* file, const void* bytes, size_t size) {
  uint64_t length = 0;
  memset(file, 0, sizeof *file);
  if (size < 8 || bytes == NULL) return lathe_safetensors_fail(file, "the file is shorter than 8 bytes", "");
  memcpy(&length, bytes, 8);
  if (length > size - 8) return lathe_safetensors_fail(file, "the header is longer than the file", "");
  return lathe_safetensors_layout(file, (const char*)bytes, 8 + (size_t)length,
                                  (unsigned char*)(uintptr_t)bytes + 8 + length, size - 8 - (size_t)length);
}

/* Finds a tensor by name. Returns 1, or 0 if the file has none; sets file->message then. */
static inline int lathe_safetensors_get(lathe_safetensors* file, const char* name, lathe_tensor* tensor) {
  for (int round = 0; round < 2; ++round, file->cursor = 0) /* the rest of the header, then all of it */
    while (lathe_safetensors_next(file, tensor) > 0)
      if (strcmp(tensor->name, name) == 0) return 1;
  lathe_safetensors_fail(file, "the file has no tensor", name);
  return 0;
}

/* Returns whether a tensor has a dtype and a shape; otherwise sets file->message. */
static inline int lathe_safetensors_is(lathe_safetensors* file, const lathe_tensor* tensor, const char* dtype,
                                       int32_t rank, const int64_t* shape) {
  int is_same = strcmp(tensor->dtype, dtype) == 0 && tensor->rank == rank;
  for (int32_t i = 0; i < rank && is_same; ++i) is_same = tensor->shape[i] == shape[i];
  if (is_same) return 1;
  size_t at = (size_t)snprintf(file->message, 160, "the tensor %.110s is %.15s [", tensor->name, tensor->dtype);
  for (int32_t i = 0; i < tensor->rank && at < 190; ++i)
    at += (size_t)snprintf(file->message + at, 24, i > 0 ? ", %lld" : "%lld", (long long)tensor->shape[i]);
  at += (size_t)snprintf(file->message + at, 32, "], not %.15s [", dtype);
  for (int32_t i = 0; i < rank && at < 230; ++i)
    at += (size_t)snprintf(file->message + at, 24, i > 0 ? ", %lld" : "%lld", (long long)shape[i]);
  snprintf(file->message + at, sizeof file->message - at, "]");
  return 0;
}

/* Returns the data of a tensor in the file; NULL and file->message if it has none of this name, dtype and shape, or
   if its data is not aligned to its elements. */
static inline const void* lathe_safetensors_find(lathe_safetensors* file, const char* name, const char* dtype,
                                                 int32_t rank, const int64_t* shape) {
  lathe_tensor tensor;
  if (!lathe_safetensors_get(file, name, &tensor) || !lathe_safetensors_is(file, &tensor, dtype, rank, shape))
    return NULL;
  if (lathe_dtype_bytes(dtype) > 0 && (uintptr_t)tensor.data % lathe_dtype_bytes(dtype) != 0) {
    lathe_safetensors_fail(file, "the data is not aligned to its elements: copy the tensor", name);
    return NULL;
  }
  return tensor.data;
}

/* Copies each tensor of `to` that `from` has as well. Returns the number of copies, and sets from->message to the
   last tensor that is missing; -1 and from->message if a tensor has another dtype or shape. */
static inline int64_t lathe_safetensors_copy(lathe_safetensors* to, lathe_safetensors* from) {
  lathe_tensor into, found;
  int64_t copied = 0;
  for (to->cursor = 0; lathe_safetensors_next(to, &into) > 0;) {
    if (!lathe_safetensors_get(from, into.name, &found)) continue;
    if (!lathe_safetensors_is(from, &found, into.dtype, into.rank, into.shape)) return -1;
    if (into.bytes != found.bytes)
      return lathe_safetensors_fail(from, "the data has not the size of the state", into.name);
    memcpy(into.data, found.data, into.bytes);
    ++copied;
  }
  to->cursor = 0;
  return copied;
}

#ifdef __cplusplus
}
#endif
