// Real models: the executor against ONNX Runtime, which runs in a process of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"
#include "tests/torch_io/executor_support.h"

namespace parsimony::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(at::IntArrayRef dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "-" : text;
}

Shape shape_of(const std::string& text) {
  Shape shape;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string dim; std::getline(in, dim, 'x');) shape.push_back(std::stoll(dim));
  return shape;
}

std::vector<InputSpec> specs_of(const std::string& file) {
  std::ifstream in(PARSIMONY_SOURCE_DIR "/tests/models/inputs.txt");
  std::vector<InputSpec> specs;
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    if (line.substr(0, tab) != file || tab == std::string::npos) continue;
    const size_t end = line.find('\t', tab + 1);  // behind it: how the oracle draws inputs
    std::istringstream words(line.substr(tab + 1, end - tab - 1));
    for (std::string word; words >> word;) specs.push_back(parse_input_spec(word));
  }
  return specs;
}

void write_inputs(const TemporaryFolder& folder, const Graph& graph, const Tensors& inputs) {
  std::string list;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    list += value.name + "\t" + std::string(name_of(value.dtype)) + "\t" +
            text_of(inputs[i].sizes()) + "\n";
    const at::Tensor dense = inputs[i].contiguous();
    const std::string bytes(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
    write_file(folder / ("input_" + std::to_string(i) + ".raw"), bytes);
  }
  write_file(folder / "inputs.txt", list);
}

/// As float64. Empty if there is no ONNX Runtime.
Tensors of_onnx_runtime(const std::string& model, const TemporaryFolder& folder) {
  const std::string command = "'" PARSIMONY_SOURCE_DIR "/tools/ort_run.py' '" + model + "' '" +
                              (folder / "") + "' >'" + (folder / "log.txt") + "' 2>&1";
  if (std::system(command.c_str()) != 0) return {};
  Tensors outputs;
  std::ifstream in(folder / "outputs.txt");
  for (std::string line; std::getline(in, line);) {
    const Shape dims = shape_of(line.substr(line.rfind('\t') + 1));
    const std::string bytes =
        read_file(folder / ("output_" + std::to_string(outputs.size()) + ".raw"));
    const at::Tensor tensor = at::empty(dims, at::kDouble);
    EXPECT_EQ(tensor.nbytes(), bytes.size());
    if (tensor.nbytes() == bytes.size()) {
      std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data_ptr()));
    }
    outputs.push_back(tensor);
  }
  return outputs;
}

void compare(const fs::path& path, int& compared) {
  SCOPED_TRACE(path.filename());
  const onnx_io::ModelFile file(path.string());
  const Graph graph = onnx_io::to_graph(file);
  ASSERT_TRUE(runs(graph));
  const Probe probe = choose_probe(graph, specs_of(path.filename().string()));
  Tensors inputs = seeded_inputs(graph, probe, 1);
  // These take pixels and bytes; numbers around zero lie so close together that normalisation
  // amplifies rounding.
  const std::string name = path.filename().string();
  if (name == "candy.onnx" || name.starts_with("y")) inputs[0] = inputs[0] * 60 + 120;
  if (name.starts_with("magika")) inputs[0] = at::randint(256, inputs[0].sizes(), at::kInt);
  const TemporaryFolder folder;
  write_inputs(folder, graph, inputs);
  const Tensors expected = of_onnx_runtime(path.string(), folder);
  ASSERT_FALSE(expected.empty()) << read_file(folder / "log.txt");
  const Tensors found = run(graph, inputs);
  ASSERT_EQ(found.size(), expected.size());
  const bool half = inputs[0].scalar_type() == at::kHalf;
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = relative_error(found[i].to(at::kDouble), expected[i]);
    const double tolerance = half ? 1e-2 : 1e-4;
    EXPECT_LE(error, tolerance) << "output " << i;
    worst = std::max(worst, error);
  }
  std::cout << path.filename().string() << ": " << worst << "\n";
  ++compared;
}

TEST(ExecutorModels, AgreeWithOnnxRuntime) {
  const char* data = std::getenv("PARSIMONY_TEST_DATA");
  if (data == nullptr || *data == '\0') GTEST_SKIP() << "there is no test data";
  if (std::system("'" PARSIMONY_SOURCE_DIR "/tools/ort_compare.py' --run "
                  "'" PARSIMONY_SOURCE_DIR
                  "/examples/models/mnist_cnn.onnx' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "ONNX Runtime is not installed: tools/setup.sh";
  }
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(data) / "models/onnx")) {
    if (entry.path().extension() == ".onnx") compare(entry.path(), compared);
  }
  EXPECT_GE(compared, 18);
}

}  // namespace
}  // namespace parsimony::test
