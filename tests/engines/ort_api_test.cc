// Our table of ONNX Runtime's functions beside the order of the library's own.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "parsimony/engines/ort_api_impl.h"

namespace parsimony::runtime {
namespace {

std::map<std::string, size_t> places_in_library() {
  std::ifstream file(PARSIMONY_SOURCE_DIR "/tests/engines/ort_functions.txt");
  std::map<std::string, size_t> places;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) places.emplace(word, places.size());
  }
  return places;
}

struct Function {
  const char* name;
  size_t offset;
};

#define HERE(member, name) \
  { #name, offsetof(ort::Api, member) }

const std::vector<Function> kFunctions = {
    HERE(get_error_message, GetErrorMessage),
    HERE(create_env, CreateEnv),
    HERE(create_session, CreateSession),
    HERE(create_session_from_array, CreateSessionFromArray),
    HERE(run, Run),
    HERE(create_session_options, CreateSessionOptions),
    HERE(set_optimization_level, SetSessionGraphOptimizationLevel),
    HERE(set_intra_op_threads, SetIntraOpNumThreads),
    HERE(session_input_count, SessionGetInputCount),
    HERE(session_output_count, SessionGetOutputCount),
    HERE(session_input_name, SessionGetInputName),
    HERE(session_output_name, SessionGetOutputName),
    HERE(create_tensor, CreateTensorAsOrtValue),
    HERE(is_tensor, IsTensor),
    HERE(tensor_data, GetTensorMutableData),
    HERE(element_type, GetTensorElementType),
    HERE(rank, GetDimensionsCount),
    HERE(dimensions, GetDimensions),
    HERE(tensor_info, GetTensorTypeAndShape),
    HERE(create_cpu_memory_info, CreateCpuMemoryInfo),
    HERE(allocator_free, AllocatorFree),
    HERE(default_allocator, GetAllocatorWithDefaultOptions),
    HERE(release_env, ReleaseEnv),
    HERE(release_status, ReleaseStatus),
    HERE(release_memory_info, ReleaseMemoryInfo),
    HERE(release_session, ReleaseSession),
    HERE(release_value, ReleaseValue),
    HERE(release_tensor_info, ReleaseTensorTypeAndShapeInfo),
    HERE(release_session_options, ReleaseSessionOptions),
    HERE(available_providers, GetAvailableProviders),
    HERE(release_providers, ReleaseAvailableProviders),
    HERE(add_config_entry, AddSessionConfigEntry),
    HERE(create_allocator, CreateAllocator),
    HERE(release_allocator, ReleaseAllocator),
    HERE(append_provider, SessionOptionsAppendExecutionProvider),
    HERE(pair_value, GetKeyValue),
    HERE(release_pairs, ReleaseKeyValuePairs),
    HERE(allocator_statistics, AllocatorGetStats),
};

#undef HERE

TEST(OrtApi, EveryFunctionIsAtTheLibrarysPlace) {
  const std::map<std::string, size_t> places = places_in_library();
  for (const Function& function : kFunctions) {
    const auto found = places.find(function.name);
    ASSERT_NE(found, places.end()) << function.name;
    EXPECT_EQ(function.offset / sizeof(void*), found->second) << function.name;
  }
  EXPECT_EQ(sizeof(ort::Api) / sizeof(void*), places.size());
}

}  // namespace
}  // namespace parsimony::runtime
