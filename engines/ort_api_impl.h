// The part of ONNX Runtime's C interface that we need, declared here.
//
// The library provides one table of functions with a stable order: later versions append, so that a
// program built against version 5 of the table runs with every library from 1.5 on. The number
// after a function is its index in the table, which a test compares with the library's header.
// @source https://onnxruntime.ai/docs/api/c/struct_ort_api.html
#pragma once

#include <cstddef>
#include <cstdint>

namespace parsimony::runtime::ort {

/// The version of the table that we request: the first with session configuration entries.
inline constexpr uint32_t kApiVersion = 5;

/// The first version with `append_provider`.
inline constexpr uint32_t kProviderVersion = 12;

/// The first version with `allocator_statistics`.
inline constexpr uint32_t kStatisticsVersion = 23;

// Opaque types of ONNX Runtime.
struct Env;
struct Status;  ///< null: success
struct Session;
struct SessionOptions;
struct RunOptions;
struct Value;
struct Allocator;
struct TensorInfo;  ///< element type and shape
struct MemoryInfo;  ///< an allocator's memory
struct Pairs;       ///< texts by key

constexpr int kSilent = 4;  ///< OrtLoggingLevel: fatal errors only; others reach us as a Status

constexpr int kNoOptimization = 0;  ///< GraphOptimizationLevel

constexpr int kArena = 1;          ///< OrtAllocatorType
constexpr int kDefaultMemory = 0;  ///< OrtMemType

template <int kCount>
struct Unused {
  void (*functions[kCount])();
};

struct Api {
  Unused<2> unused_0;
  const char* (*get_error_message)(const Status*);                    // 2
  Status* (*create_env)(int log_level, const char* log_name, Env**);  // 3
  Unused<3> unused_4;
  Status* (*create_session)(const Env*, const char* path, const SessionOptions*, Session**);  // 7
  Status* (*create_session_from_array)(const Env*, const void* model, size_t bytes,
                                       const SessionOptions*, Session**);  // 8
  Status* (*run)(Session*, const RunOptions*, const char* const* input_names,
                 const Value* const* inputs, size_t input_count, const char* const* output_names,
                 size_t output_count, Value** outputs);  // 9
  Status* (*create_session_options)(SessionOptions**);   // 10
  Unused<12> unused_11;
  Status* (*set_optimization_level)(SessionOptions*, int);  // 23
  Status* (*set_intra_op_threads)(SessionOptions*, int);    // 24
  Unused<5> unused_25;
  Status* (*session_input_count)(const Session*, size_t*);   // 30
  Status* (*session_output_count)(const Session*, size_t*);  // 31
  Unused<4> unused_32;
  Status* (*session_input_name)(const Session*, size_t, Allocator*, char**);   // 36
  Status* (*session_output_name)(const Session*, size_t, Allocator*, char**);  // 37
  Unused<10> unused_38;
  Status* (*create_tensor)(Allocator*, const int64_t* shape, size_t rank, int type, Value**);  // 48
  Unused<1> unused_49;
  Status* (*is_tensor)(const Value*, int*);  // 50
  Status* (*tensor_data)(Value*, void**);    // 51
  Unused<8> unused_52;
  Status* (*element_type)(const TensorInfo*, int*);                 // 60
  Status* (*rank)(const TensorInfo*, size_t*);                      // 61
  Status* (*dimensions)(const TensorInfo*, int64_t*, size_t rank);  // 62
  Unused<2> unused_63;
  Status* (*tensor_info)(const Value*, TensorInfo**);  // 65
  Unused<3> unused_66;
  Status* (*create_cpu_memory_info)(int allocator, int memory, MemoryInfo**);  // 69
  Unused<6> unused_70;
  Status* (*allocator_free)(Allocator*, void*);  // 76
  Unused<1> unused_77;
  Status* (*default_allocator)(Allocator**);  // 78
  Unused<13> unused_79;
  void (*release_env)(Env*);                 // 92
  void (*release_status)(Status*);           // 93
  void (*release_memory_info)(MemoryInfo*);  // 94
  void (*release_session)(Session*);         // 95
  void (*release_value)(Value*);             // 96
  Unused<2> unused_97;
  void (*release_tensor_info)(TensorInfo*);          // 99
  void (*release_session_options)(SessionOptions*);  // 100
  Unused<24> unused_101;
  Status* (*available_providers)(char*** names, int* count);  // 125
  Status* (*release_providers)(char** names, int count);      // 126
  Unused<3> unused_127;
  Status* (*add_config_entry)(SessionOptions*, const char* key, const char* value);  // 130
  Status* (*create_allocator)(const Session*, const MemoryInfo*, Allocator**);       // 131
  void (*release_allocator)(Allocator*);                                             // 132
  Unused<83> unused_133;
  Status* (*append_provider)(SessionOptions*, const char* name, const char* const* keys,
                             const char* const* values, size_t count);  // 216
  Unused<80> unused_217;
  const char* (*pair_value)(const Pairs*, const char* key);  // 297
  Unused<2> unused_298;
  void (*release_pairs)(Pairs*);  // 300
  Unused<18> unused_301;
  Status* (*allocator_statistics)(const Allocator*, Pairs**);  // 319
};

/// The prefix of the functions that GPU builds export; the provider's name follows.
inline constexpr const char* kAppendProvider = "OrtSessionOptionsAppendExecutionProvider_";
using AppendProvider = Status* (*)(SessionOptions*, int device);

struct ApiBase {
  const Api* (*get_api)(uint32_t version);  ///< null if the library is older
  const char* (*get_version)();
};

/// The only symbol of the library that we look up.
inline constexpr const char* kApiBaseSymbol = "OrtGetApiBase";

}  // namespace parsimony::runtime::ort
