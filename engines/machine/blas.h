// The BLAS that is loaded: which library, and which of its kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parsimony/engines/machine/processor.h"

namespace parsimony::machine {

struct Blas {
  std::string path;       ///< of the file, symbolic links followed
  std::string library;    ///< "OpenBLAS", "MKL", "BLIS", "ATLAS", "reference BLAS"; or "unknown"
  std::string version;    ///< "0.3.21"; empty if the library does not tell
  std::string kernel;     ///< "SkylakeX"; empty if the library does not tell
  std::string threading;  ///< "OpenMP", "POSIX threads" or "one thread"; empty: not told
  int threads = 0;        ///< 0: not told
};

/// The BLAS behind `sgemm_` as seen from `library`, a handle of dlopen; null: as seen from the
/// program or library that this is linked into. Empty if there is none.
std::optional<Blas> blas_seen_from(void* library);

/// What OpenBLAS's kernels of this name use; empty for names that are not known here.
std::optional<Vectors> vectors_of_kernel(std::string_view kernel);

/// The OPENBLAS_CORETYPE that gives kernels with such vectors; every version with them takes it.
std::string_view kernel_with(Vectors vectors);

/// The kernel that should be asked for: empty if OpenBLAS's own choice uses all that the processor
/// has, if the library is another one, or the kernel not known here.
std::string_view better_kernel(const Blas& blas, const Processor& processor);

/// POSIX threads of an OpenBLAS that does not go by OpenMP's number. False if it cannot be set.
bool set_own_threads(void* library, int threads);

}  // namespace parsimony::machine
