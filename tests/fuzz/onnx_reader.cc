// Any bytes are a model or an Error. What can be pruned comes out as a model whose shapes fit.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/fuzz/support/memory.h"
#include "tests/fuzz/support/model_mutator.h"
#include "tests/fuzz/support/scratch.h"

using namespace parsimony;  // NOLINT(google-build-using-namespace)

namespace {

const fuzz::Scratch& scratch() {
  static const fuzz::Scratch folder = [] {
    fuzz::Scratch made;
    made.write("data.bin", std::string(256, '\x3c'));  // for models with external data
    return made;
  }();
  return folder;
}

/// Where the smaller model no longer fits together although the large one did.
void check(const std::string& path, const Probe& probe) {
  try {
    const onnx_io::ModelFile file(path);
    infer(onnx_io::to_graph(file), probe);
  } catch (const Error& error) {
    std::fprintf(stderr, "the pruned model is broken: %s\n", error.what());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  scratch().write("in.onnx", {reinterpret_cast<const char*>(data), size});
  const fuzz::MemoryLimit limit(size);
  const std::string out = scratch() / "out.onnx";
  Probe probe;
  try {
    onnx_io::ModelFile file(scratch() / "in.onnx");
    Graph graph = onnx_io::to_graph(file);
    const Pruning pruning = plan_pruning(graph, from_shorthand({.ratio = 0.5}));
    probe = pruning.analysis.probe;
    onnx_io::OnnxEditor editor(file);
    apply_plan(pruning.plan, graph, probe, editor);
    file.write(out);
  } catch (const Error&) {
    return 0;
  }
  check(out, probe);
  return 0;
}

/// Mostly changes that leave a model well formed, which blind ones hardly ever do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  std::mt19937 random(seed);
  if (random() % 8 != 0) {
    const std::string mutant = fuzz::mutated({reinterpret_cast<const char*>(data), size}, random);
    if (!mutant.empty() && mutant.size() <= max_size) {
      mutant.copy(reinterpret_cast<char*>(data), mutant.size());
      return mutant.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
