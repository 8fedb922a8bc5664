#include "parsimony/engines/machine/blas.h"

#include <dlfcn.h>
#include <strings.h>

#include <array>
#include <filesystem>
#include <utility>

namespace parsimony::machine {
namespace {

constexpr int kPosixThreads = 1;  // openblas_get_parallel
constexpr int kOpenMp = 2;

/// Finds a C function of the library; null if it has none.
template <typename Function>
Function* function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library == nullptr ? RTLD_DEFAULT : library, name));
}

std::string file_of(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : path.string();
}

/// "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." → "0.3.21"
std::string second_word(std::string_view text) {
  const size_t begin = text.find(' ');
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = text.substr(begin + 1);
  return std::string(rest.substr(0, rest.find(' ')));
}

void ask_openblas(void* library, Blas& blas) {
  blas.library = "OpenBLAS";
  if (auto* config = function<char*()>(library, "openblas_get_config")) {
    blas.version = second_word(config());
  }
  if (auto* name = function<char*()>(library, "openblas_get_corename")) blas.kernel = name();
  if (auto* threads = function<int()>(library, "openblas_get_num_threads")) {
    blas.threads = threads();
  }
  if (auto* parallel = function<int()>(library, "openblas_get_parallel")) {
    const int kind = parallel();
    blas.threading = kind == kOpenMp         ? "OpenMP"
                     : kind == kPosixThreads ? "POSIX threads"
                                             : "one thread";
  }
}

/// Functions that identify libraries without a name.
constexpr auto kMarks = std::to_array<std::pair<const char*, const char*>>({
    {"mkl_get_version_string", "MKL"},
    {"MKL_Get_Version_String", "MKL"},  // inside libtorch
    {"bli_info_get_version_str", "BLIS"},
    {"ATL_buildinfo", "ATLAS"},
});

std::string name_by_marks(void* library, const std::string& path) {
  for (const auto& [mark, name] : kMarks) {
    if (function<void()>(library, mark) != nullptr) return name;
  }
  // Debian's and Fedora's reference implementation.
  const bool reference = path.find("/blas/libblas.so") != std::string::npos ||
                         path.find("/libblas.so") != std::string::npos;
  return reference ? "reference BLAS" : "unknown";
}

struct Kernel {
  const char* name;
  Vectors vectors;
};

constexpr auto kKernels = std::to_array<Kernel>({
    {"Prescott", Vectors::kNone},     {"Core2", Vectors::kNone},
    {"Penryn", Vectors::kNone},       {"Dunnington", Vectors::kNone},
    {"Nehalem", Vectors::kNone},      {"Atom", Vectors::kNone},
    {"Nano", Vectors::kNone},         {"Opteron", Vectors::kNone},
    {"Opteron_SSE3", Vectors::kNone}, {"Barcelona", Vectors::kNone},
    {"Bobcat", Vectors::kNone},       {"Katmai", Vectors::kNone},
    {"Sandybridge", Vectors::kAvx},   {"Bulldozer", Vectors::kAvx},
    {"Piledriver", Vectors::kAvx},    {"Steamroller", Vectors::kAvx},
    {"Haswell", Vectors::kAvx2},      {"Zen", Vectors::kAvx2},
    {"Excavator", Vectors::kAvx2},    {"SkylakeX", Vectors::kAvx512},
    {"Cooperlake", Vectors::kAvx512}, {"SapphireRapids", Vectors::kAvx512},
});

}  // namespace

std::optional<Blas> blas_seen_from(void* library) {
  auto* gemm = function<void()>(library, "sgemm_");
  if (gemm == nullptr) return std::nullopt;
  Blas blas;
  blas.path = file_of(reinterpret_cast<const void*>(gemm));
  if (function<char*()>(library, "openblas_get_config") != nullptr) {
    ask_openblas(library, blas);
  } else {
    blas.library = name_by_marks(library, blas.path);
  }
  return blas;
}

std::optional<Vectors> vectors_of_kernel(std::string_view kernel) {
  for (const Kernel& known : kKernels) {
    if (strcasecmp(known.name, std::string(kernel).c_str()) == 0) return known.vectors;
  }
  return std::nullopt;
}

std::string_view kernel_with(Vectors vectors) {
  switch (vectors) {
    case Vectors::kAvx512:
      return "SkylakeX";
    case Vectors::kAvx2:
      return "Haswell";
    case Vectors::kAvx:
      return "Sandybridge";
    case Vectors::kNone:
      break;
  }
  return "Prescott";
}

std::string_view better_kernel(const Blas& blas, const Processor& processor) {
  const auto has = vectors_of_kernel(blas.kernel);
  const Vectors could = vectors_of(processor);
  return has && *has < could ? kernel_with(could) : std::string_view{};
}

bool set_own_threads(void* library, int threads) {
  auto* parallel = function<int()>(library, "openblas_get_parallel");
  auto* set = function<void(int)>(library, "openblas_set_num_threads");
  if (parallel == nullptr || set == nullptr || parallel() != kPosixThreads) return false;
  set(threads);
  return true;
}

}  // namespace parsimony::machine
