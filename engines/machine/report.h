// What a machine and its libraries look like to the networks that are to run on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parsimony/engines/machine/blas.h"
#include "parsimony/engines/machine/cores.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony::machine {

/// One thing that was looked at.
struct Finding {
  std::string subject;   ///< "BLAS"
  std::string found;     ///< "OpenBLAS 0.3.21, OpenMP, kernel Haswell"
  std::string measured;  ///< "matrix products 48 GFLOP/s, convolutions 140"; empty: nothing was
  /// How many times as long as need be the thing that was measured takes; 1 if it costs nothing or
  /// nothing was measured.
  double cost = 1;
  std::string advice;  ///< one line; empty: nothing to do
};

/// Seconds of a training step with that many threads.
struct ThreadTime {
  int threads = 1;
  double seconds = 0;
};

/// What only libtorch knows.
struct TorchFacts {
  std::string version;     ///< "1.13.1"
  std::string capability;  ///< of ATen's own kernels: "AVX2", "AVX512", "DEFAULT"
  bool onednn = false;
  int aten_threads = 1;
  int openmp_threads = 0;         ///< 0: no OpenMP
  double product_gflops = 0;      ///< matrix product, one thread; a multiply-add is two
  double convolution_gflops = 0;  ///< oneDNN's convolution, one thread; 0 without oneDNN
  double faults_per_step = 0;     ///< pages that a training step has the system fetch
  double seconds_per_fault = 0;
  std::vector<ThreadTime> steps;         ///< by ascending threads
  int best_threads = 1;                  ///< those with which the step is quickest
  double seconds_with_aten_threads = 0;  ///< the step as the process was found
};

struct MachineReport {
  Processor processor;
  Cores cores;
  std::string allocator;  ///< "glibc", "mimalloc", "jemalloc" or "tcmalloc"
  std::optional<Blas> blas;
  std::optional<TorchFacts> torch;
  std::vector<Finding> findings;
  double seconds = 0;  ///< that the examination took
};

/// What can be found without libtorch; `library` as in `blas_seen_from`. Nothing is measured.
MachineReport facts(void* library);

/// Says what each of the facts means and what to do about it.
void judge(MachineReport& report);

}  // namespace parsimony::machine
