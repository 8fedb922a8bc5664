// The properties of a machine and its libraries that matter for running networks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parsimony/engines/machine/processor.h"

namespace parsimony::machine {

/// One examined property.
struct Finding {
  std::string subject;   ///< "libtorch"
  std::string found;     ///< "2.15.0, own kernels AVX2, with oneDNN"
  std::string measured;  ///< "matrix products 48 GFLOP/s, convolutions 140"; empty: nothing
  /// Slowdown relative to the best setting; 1 if there is none or nothing was measured.
  double cost = 1;
  std::string advice;  ///< one line; empty: nothing to do
};

/// Seconds of a training step with this many threads.
struct ThreadTime {
  int threads = 1;
  double seconds = 0;
};

/// Facts that need libtorch.
struct TorchFacts {
  std::string version;     ///< "2.15.0"
  std::string capability;  ///< of ATen's own kernels: "AVX2", "AVX512", "DEFAULT"
  bool onednn = false;
  int aten_threads = 1;
  int openmp_threads = 0;         ///< 0: no OpenMP
  double product_gflops = 0;      ///< matrix product, one thread; a multiply-add is two
  double convolution_gflops = 0;  ///< oneDNN's convolution, one thread; 0 without oneDNN
  double faults_per_step = 0;     ///< page faults per training step
  double seconds_per_fault = 0;
  std::vector<ThreadTime> steps;         ///< by ascending threads
  int best_threads = 1;                  ///< the number of threads with the fastest step
  double seconds_with_aten_threads = 0;  ///< the step with the process's initial settings
};

struct MachineReport {
  Processor processor;
  Cores cores;
  std::string allocator;  ///< "glibc", "mimalloc", "jemalloc" or "tcmalloc"
  std::optional<TorchFacts> torch;
  std::vector<Finding> findings;
  double seconds = 0;  ///< duration of the examination
};

/// Returns the facts available without libtorch. Nothing is measured.
MachineReport facts();

/// Returns the facts available without libtorch, with advice.
MachineReport facts_without_torch();

/// Interprets the facts and gives advice.
void advise(MachineReport& report);

}  // namespace parsimony::machine
