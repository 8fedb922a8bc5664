// The proof in ONNX Runtime alone gives the verdict of the proof in libtorch.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/prune.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/onnx_io/model.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/network.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

std::optional<runtime::OnnxRuntime> installed_onnx_runtime() {
  try {
    return runtime::find_onnx_runtime();
  } catch (const UnsupportedError&) {
    return {};
  }
}

PruneRequest half_of(const Fixture& fixture) {
  PruneRequest request = from_shorthand({.ratio = 0.5});
  request.mixing = Mixing::kAll;
  for (const std::string& spec : fixture.inputs) request.inputs.push_back(parse_input_spec(spec));
  return request;
}

/// "proven", "nothing to prune", or why not.
std::string verdict_of(const Fixture& fixture, const std::string& path, Engine& engine) {
  try {
    onnx_io::OnnxModel model(path);
    const PruneResult result = prune_model(model, half_of(fixture), {.engine = &engine});
    if (result.plan.empty()) return "nothing to prune";
    return result.proof.ran() ? "proven" : result.proof.not_run;
  } catch (const Error& error) {
    return error.what();
  }
}

/// Networks that are proven in one of them only. In a file absent states of recurrent layers are
/// numbers; the executor has no TfIdfVectorizer.
const std::set<std::string> kOtherwise = {"gru_activations", "lstm_ones_state", "rnn_sigmoid",
                                          "tf_idf_vectorizer"};

TEST(Proofs, InOnnxRuntimeAreThoseInLibtorch) {
  const auto library = installed_onnx_runtime();
  if (!library) GTEST_SKIP() << "there is no ONNX Runtime";
  const auto onnxruntime = onnx_runtime_engine(*library, {});
  torch_io::TorchEngine libtorch;
  const TemporaryFolder folder;
  int proven = 0;
  for (const Fixture& fixture : all_fixtures()) {
    if (!fixture.onnxruntime) continue;
    const std::string path = folder / (fixture.name + ".onnx");
    std::ofstream(path, std::ios::binary) << fixture.model.SerializeAsString();
    const std::string expected = verdict_of(fixture, path, libtorch);
    const std::string found = verdict_of(fixture, path, *onnxruntime);
    if (expected == "proven" && found == "proven") ++proven;
    if (kOtherwise.contains(fixture.name)) {
      EXPECT_NE(found, expected) << fixture.name << " need no longer be named here";
    } else if (expected == "proven" || found == "proven") {
      EXPECT_EQ(found, expected) << fixture.name;
    }
  }
  std::cout << proven << " networks are proven in both\n";
  if (std::getenv("PARSIMONY_FIXTURE") != nullptr) return;
  EXPECT_GE(proven, 200);
}

/// How far a small network in memory, on which data run, is from the small file; empty: it is not
/// pruned, or cannot be run.
std::optional<double> between_memory_and_file(const Fixture& fixture, const std::string& path,
                                              Engine& engine) {
  try {
    onnx_io::OnnxModel model(path);
    const PruneRequest request = half_of(fixture);
    const Pruning pruning = plan_pruning(model.graph(), request);
    if (pruning.plan.empty()) return {};
    std::vector<TensorList> inputs;
    TensorList in_memory;
    {
      const SmallNetwork small(model.graph(), pruning.plan);
      inputs = {runtime::random_inputs(small.graph(), {.specs = request.inputs})};
      in_memory = engine.open(small.graph())->run(inputs).front();
    }
    apply_plan(pruning, model.graph(), model.editor());
    model.finalize();
    return relative_error(in_memory, model.open(engine)->run(inputs).front());
  } catch (const UnsupportedError&) {
    return {};
  }
}

TEST(SmallNetworks, ComputeInMemoryWhatTheirFilesDo) {
  const auto library = installed_onnx_runtime();
  if (!library) GTEST_SKIP() << "there is no ONNX Runtime";
  const auto engine = onnx_runtime_engine(*library, {});
  const TemporaryFolder folder;
  int compared = 0;
  for (const Fixture& fixture : all_fixtures()) {
    if (!fixture.onnxruntime) continue;
    const std::string path = folder / (fixture.name + ".onnx");
    std::ofstream(path, std::ios::binary) << fixture.model.SerializeAsString();
    const auto apart = between_memory_and_file(fixture, path, *engine);
    if (!apart) continue;
    ++compared;
    EXPECT_LT(*apart, 1e-5) << fixture.name;
  }
  std::cout << compared << " networks compared\n";
  if (std::getenv("PARSIMONY_FIXTURE") != nullptr) return;
  EXPECT_GE(compared, 400);
}

}  // namespace
}  // namespace parsimony::test
