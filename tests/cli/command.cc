#include "tests/cli/command.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "parsimony/base/errors.h"
#include "parsimony/engines/onnx_runtime.h"
#include "tests/support/made.h"

namespace parsimony::test {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

onnx::ModelProto cnn() {
  onnx::ModelProto model = model_of(R"(
    agraph (float[N, 3, 8, 8] x) => (float[N, 5] y) {
      a = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
      b = Relu (a)
      c = Conv <pads = [1, 1, 1, 1]> (b, w2)
      d = GlobalAveragePool (c)
      e = Flatten (d)
      y = Gemm <transB = 1> (e, w3)
    })");
  add_weight(model, "w1", "8x3x3x3");
  add_weight(model, "b1", "8");
  add_weight(model, "w2", "6x8x3x3");
  add_weight(model, "w3", "5x6");
  const char* const names[] = {"c1", "relu", "c2", "pool", "flat", "fc"};
  for (int n = 0; n < 6; ++n) model.mutable_graph()->mutable_node(n)->set_name(names[n]);
  return model;
}

onnx::ModelProto whole() {
  onnx::ModelProto model = model_of(R"(
    agraph (float[2, 4] x) => (float[2, 5] y) { y = MatMul (x, w) })");
  add_weight(model, "w", "4x5");
  return model;
}

}  // namespace

Workplace::Workplace() {
  save(cnn(), *this / "cnn.onnx");
  save(whole(), *this / "whole.onnx");
}

Outcome Workplace::run(const std::string& arguments,
                       const std::map<std::string, std::string>& environment) const {
  return shell("parsimony " + arguments, environment);
}

Outcome Workplace::shell(const std::string& line,
                         const std::map<std::string, std::string>& environment) const {
  const TemporaryFolder captured;
  const std::string bin = fs::path(PARSIMONY_BINARY).parent_path().string();
  std::ostringstream script;
  script << "cd '" << (folder_ / "") << "'; PATH='" << bin << "':\"$PATH\"; export PATH; ";
  // The stand-in for libtorch is what a test wants to see.
  const auto component = environment.find("PARSIMONY_TORCH_COMPONENT");
  if (component != environment.end() &&
      component->second.find("fake_component") != std::string::npos) {
    script << "export PARSIMONY_ONNXRUNTIME=/none; ";
  }
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      script << "unset " << name << "; ";
    } else {
      script << "export " << name << "='" << value << "'; ";
    }
  }
  script << "{ " << line << "\n} >'" << (captured / "out") << "' 2>'" << (captured / "err") << "'";
  const int status = std::system(script.str().c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(captured / "out"),
          read(captured / "err")};
}

onnx::ModelProto two_convolutions(const std::string& between, const std::string& channels,
                                  const std::string& size) {
  onnx::ModelProto model = model_of(R"(<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
    agraph (float[N, 3, )" + size + ", " +
                                    size + R"(] x) => (float[N, 5] y) {
      a = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
      )" + between + R"(
      c = Conv <pads = [1, 1, 1, 1]> (b, w2)
      d = GlobalAveragePool (c)
      e = Flatten (d)
      y = Gemm <transB = 1> (e, w3)
    })");
  add_weight(model, "w1", channels + "x3x3x3");
  add_weight(model, "b1", channels);
  add_weight(model, "w2", "6x8x3x3");
  add_weight(model, "w3", "5x6");
  return model;
}

bool has_onnx_runtime() { return !onnx_runtime().empty(); }

std::string onnx_runtime() {
  try {
    return runtime::find_onnx_runtime().path();
  } catch (const UnsupportedError&) {
    return {};
  }
}

bool Workplace::has(const std::string& name) const { return fs::exists(*this / name); }

std::string Workplace::bytes(const std::string& name) const { return read(*this / name); }

void Workplace::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(*this / name, std::ios::binary) << bytes;
}

std::vector<std::string> Workplace::results() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "")) {
    const std::string name = entry.path().filename().string();
    if (name != "cnn.onnx" && name != "whole.onnx") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string mnist() { return PARSIMONY_SOURCE_DIR "/examples/models/mnist_cnn.onnx"; }

std::string lines_with(const std::string& text, const std::string& beginning) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning)) found += line + "\n";
  }
  return found;
}

void save(const onnx::ModelProto& model, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  model.SerializeToOstream(&file);
}

void expect_messages(const std::string& name, const Workplace& place,
                     const std::map<std::string, std::string>& environment) {
  const std::string file = "tests/cli/messages/" + name + ".txt";
  const std::vector<std::string> before = place.results();
  std::istringstream lines(read(std::string(PARSIMONY_SOURCE_DIR) + "/" + file));
  std::string made;
  std::string line;
  std::getline(lines, made);
  made += "\n";
  while (std::getline(lines, line)) {
    if (!line.starts_with("$ ")) continue;
    Outcome outcome = place.shell(line.substr(2), environment);
    for (const auto& [variable, value] : environment) {
      const size_t at = line.find("$" + variable) == std::string::npos ? std::string::npos
                                                                       : outcome.err.find(value);
      if (at != std::string::npos) outcome.err.replace(at, value.size(), "$" + variable);
    }
    made += "\n" + line + "\n[" + std::to_string(outcome.code) + "] " + outcome.out + outcome.err;
    EXPECT_NE(outcome.out.empty(), outcome.err.empty()) << line;
    EXPECT_EQ(place.results(), before) << line;
  }
  expect_made(file, made);
}

}  // namespace parsimony::test
