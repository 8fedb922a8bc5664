// The loaded BLAS: the library, and its active kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parsimony/engines/machine/processor.h"

namespace parsimony::machine {

struct Blas {
  std::string path;       ///< resolved path of the file
  std::string library;    ///< "OpenBLAS", "MKL", "BLIS", "ATLAS", "reference BLAS"; or "unknown"
  std::string version;    ///< "0.3.21"; empty if unknown
  std::string kernel;     ///< "SkylakeX"; empty if unknown
  std::string threading;  ///< "OpenMP", "POSIX threads" or "one thread"; empty: unknown
  int threads = 0;        ///< 0: unknown
};

/// Returns the BLAS that `sgemm_` resolves to from `library`, a handle of dlopen; null: from the
/// program or library that this is linked into. Empty if there is none.
std::optional<Blas> blas_seen_from(void* library);

/// Returns the vectors that OpenBLAS's kernels of this name use; empty for unknown names.
std::optional<Vectors> vectors_of_kernel(std::string_view kernel);

/// Returns the OPENBLAS_CORETYPE that selects kernels with these vectors in every version that has
/// them.
std::string_view kernel_with(Vectors vectors);

/// Returns the kernel to request; empty if OpenBLAS's own choice uses the processor's widest
/// vectors, for other libraries, and for unknown kernels.
std::string_view better_kernel(const Blas& blas, const Processor& processor);

/// Sets the number of threads of an OpenBLAS built with POSIX threads. Returns false if it cannot
/// be set.
bool set_own_threads(void* library, int threads);

}  // namespace parsimony::machine
