// ONNX's own test cases, as the package libonnx-testdata has them: every case whose operators the
// executor claims. Then some by hand, of versions that an older package has no cases of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/model.h"
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

std::string difference(const Tensors& found, const Tensors& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string which = "output " + std::to_string(i) + ": ";
    const at::Tensor& a = found.at(i);
    const at::Tensor& b = expected[i];
    std::ostringstream text;
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
      text << which << a.sizes() << ' ' << a.scalar_type() << ", expected " << b.sizes() << ' '
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

/// What younger versions of ONNX have cases of, and the executor says that it does not run.
bool is_known_refusal(std::string_view message) {
  constexpr std::string_view kReasons[] = {
      "output of the scores is not supported",
      "sequences of tensors of different shapes are not supported"};
  return std::any_of(std::begin(kReasons), std::end(kReasons),
                     [&](std::string_view reason) { return message.ends_with(reason); });
}

/// Cases that cannot even be read, or whose operators or types are not ours, are passed over.
Outcome evaluate(const fs::path& folder) {
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
    Tensors expected;
    try {
      inputs = read_all(data, "input");
      expected = read_all(data, "output");
    } catch (const std::exception&) {  // sequences, types that libtorch does not have
      return Outcome::kNotOurs;
    }
    any = true;
    try {
      const std::string text = difference(run(graph, inputs), expected);
      if (text.empty()) continue;
      ADD_FAILURE() << folder.filename() << ": " << text;
    } catch (const UnsupportedError& error) {
      if (is_known_refusal(error.what())) return Outcome::kNotOurs;
      ADD_FAILURE() << folder.filename() << ": " << error.what();
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
    const Outcome outcome = evaluate(entry.path());
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

/// Two of three columns share a scale and a zero point.
at::Tensor by_blocks(const std::string& op, const std::string& from, const std::string& to,
                     const at::Tensor& x) {
  const TextModel model("<ir_version: 10, opset_import: [\"\" : 21]> g (" + from +
                            "[2,3] x, float[2,2] s, int8[2,2] z) => (" + to +
                            "[2,3] y) { y = " + op + " <axis = 1, block_size = 2> (x, s, z) }",
                        {});
  const at::Tensor scales = at::tensor({1.F, 10.F, 2.F, 20.F}).reshape({2, 2});
  const at::Tensor zeros = at::tensor({0, 1, 1, 0}, at::kChar).reshape({2, 2});
  return run(model.graph(), {x, scales, zeros}).at(0);
}

TEST(ExecutorLaterVersions, QuantisationHasScalesOfBlocks) {
  const at::Tensor real = at::tensor({1.F, 2.F, 20.F, 6.F, 8.F, 120.F}).reshape({2, 3});
  const at::Tensor whole = at::tensor({1, 2, 3, 4, 5, 6}, at::kChar).reshape({2, 3});
  EXPECT_TRUE(by_blocks("DequantizeLinear", "int8", "float", whole).equal(real));
  EXPECT_TRUE(by_blocks("QuantizeLinear", "float", "int8", real).equal(whole));
}

TEST(ExecutorLaterVersions, ExtremaOverNothingAreInfinite) {
  const TextModel model(R"(<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,0,3] x) => (float[2,3] high, float[2,1,3] low) {
      high = ReduceMax <axes = [1], keepdims = 0> (x)
      low = ReduceMin <axes = [1]> (x)
    })",
                        {});
  const Tensors found = run(model.graph(), {at::empty({2, 0, 3})});
  EXPECT_TRUE(found.at(0).equal(at::full({2, 3}, -INFINITY)));
  EXPECT_TRUE(found.at(1).equal(at::full({2, 1, 3}, INFINITY)));
}

/// As ONNX Runtime 1.30 answers.
TEST(ExecutorLaterVersions, AntiAliasedResizeRepeatsTheEdgeUnlessToldNotTo) {
  const TextModel model(R"(<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,1,1,4] x, float[4] s) => (float[1,1,1,2] edge, float[1,1,1,2] without) {
      edge = Resize <mode = "linear", antialias = 1> (x, , s)
      without = Resize <mode = "linear", antialias = 1, exclude_outside = 1> (x, , s)
    })",
                        {});
  const Tensors found = run(model.graph(), {at::arange(1.F, 5.F).reshape({1, 1, 1, 4}),
                                            at::tensor({1.F, 1.F, 1.F, 0.5F})});
  EXPECT_TRUE(found.at(0).flatten().allclose(at::tensor({1.625F, 3.375F})));
  EXPECT_TRUE(found.at(1).flatten().allclose(at::tensor({12.F / 7, 23.F / 7})));
}

}  // namespace
}  // namespace parsimony::test
