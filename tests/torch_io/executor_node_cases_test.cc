// ONNX's own test cases, as the package libonnx-testdata has them: every case whose operators the
// executor claims.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "parsimony/graph/errors.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/torch_io/executor_support.h"

namespace parsimony::test {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = "/usr/share/libonnx-testdata/data";

/// Cases that are not run although their operators are known.
const std::map<std::string, std::string>& left_out() {
  static const std::map<std::string, std::string> cases = {
      {"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
       "counts what lies beyond the padding, as neither the other cases nor libtorch do"},
      {"test_identity_sequence", "a sequence"},
      {"test_qlinearmatmul_2D_int8_float16", "wraps around where it has to saturate"},
      {"test_qlinearmatmul_2D_int8_float32", "wraps around where it has to saturate"},
      {"test_qlinearmatmul_3D_int8_float16", "wraps around where it has to saturate"},
      {"test_qlinearmatmul_3D_int8_float32", "wraps around where it has to saturate"},
      {"test_resize_downsample_scales_cubic_align_corners", "wants a length that is no integer"},
      {"test_resize_downsample_scales_linear_align_corners", "wants a length that is no integer"},
      {"test_roialign_mode_max", "not run, which the error says"},
      {"test_training_dropout", "random"},
      {"test_training_dropout_mask", "random"},
      {"test_training_dropout_default", "random"},
      {"test_training_dropout_default_mask", "random"},
  };
  return cases;
}

enum class Outcome { kPassed, kFailed, kNotOurs };

onnx::TensorProto read_tensor(const fs::path& path) {
  onnx::TensorProto tensor;
  std::ifstream in(path, std::ios::binary);
  if (!tensor.ParseFromIstream(&in)) throw std::runtime_error(path.string() + " is no tensor");
  return tensor;
}

Tensors read_all(const fs::path& folder, const std::string& stem) {
  Tensors tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (stem + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return tensors;
    tensors.push_back(tensor_of(read_tensor(path)));
  }
}

std::string difference(const Tensors& found, const Tensors& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string which = "output " + std::to_string(i) + ": ";
    const at::Tensor& a = found.at(i);
    const at::Tensor& b = wanted[i];
    std::ostringstream text;
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
      text << which << a.sizes() << ' ' << a.scalar_type() << ", wanted " << b.sizes() << ' '
           << b.scalar_type();
      return text.str();
    }
    if (!at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-3, 1e-5, true)) {
      text << which << "off by " << relative_error(a, b);
      return text.str();
    }
  }
  return "";
}

/// Cases that cannot even be read, or whose operators or types are not ours, are passed over.
Outcome judge(const fs::path& folder) {
  std::optional<onnx_io::ModelFile> file;
  Graph graph;
  try {
    file.emplace((folder / "model.onnx").string());
    graph = onnx_io::to_graph(*file);
    if (!runs(graph)) return Outcome::kNotOurs;
  } catch (const Error&) {
    return Outcome::kNotOurs;
  }
  bool any = false;
  for (int set = 0;; ++set) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    if (!fs::exists(data)) break;
    Tensors inputs;
    Tensors wanted;
    try {
      inputs = read_all(data, "input");
      wanted = read_all(data, "output");
    } catch (const std::exception&) {  // sequences, types that libtorch does not have
      return Outcome::kNotOurs;
    }
    any = true;
    try {
      const std::string text = difference(run(graph, inputs), wanted);
      if (text.empty()) continue;
      ADD_FAILURE() << folder.filename() << ": " << text;
    } catch (const std::exception& error) {
      ADD_FAILURE() << folder.filename() << ": " << error.what();
    }
    return Outcome::kFailed;
  }
  return any ? Outcome::kPassed : Outcome::kNotOurs;
}

int passed_in(const std::string& part) {
  int passed = 0;
  for (const auto& entry : fs::directory_iterator(kCases / part)) {
    if (left_out().contains(entry.path().filename().string())) continue;
    const Outcome outcome = judge(entry.path());
    if (outcome == Outcome::kPassed) ++passed;
    if (outcome == Outcome::kNotOurs && std::getenv("PARSIMONY_VERBOSE") != nullptr) {
      std::cout << "not ours: " << entry.path().filename() << "\n";
    }
  }
  std::cout << part << ": " << passed << " cases\n";
  return passed;
}

TEST(ExecutorNodeCases, Nodes) {
  if (!fs::exists(kCases)) GTEST_SKIP() << "libonnx-testdata is not installed";
  EXPECT_GE(passed_in("node"), 690);
}

TEST(ExecutorNodeCases, Layers) {
  if (!fs::exists(kCases)) GTEST_SKIP() << "libonnx-testdata is not installed";
  EXPECT_GE(passed_in("simple") + passed_in("pytorch-converted") + passed_in("pytorch-operator"),
            0);
}

}  // namespace
}  // namespace parsimony::test
