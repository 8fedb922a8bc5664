#include "tests/agreement/onnx_export.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "parsimony/base/files.h"

namespace parsimony::test {
namespace {

constexpr char kExporter[] = PARSIMONY_SOURCE_DIR "/tests/models/export_onnx.py";
constexpr int kNoTorch = 77;
constexpr int kNoProgram = 127;

std::string dims_text(const Shape& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

}  // namespace

std::string export_onnx(const std::string& name, const std::string& script_path,
                        const Shape& input) {
  const std::string dims = dims_text(input);
  const size_t key = std::hash<std::string>{}(read_file(script_path) + read_file(kExporter) + dims);
  const std::filesystem::path folder = PARSIMONY_EXPORTS;
  std::filesystem::create_directories(folder);
  const std::string path = folder / (name + "-" + std::to_string(key) + ".onnx");
  if (std::filesystem::exists(path)) return path;

  const std::string log = path + ".log";
  const std::string command = std::string("OMP_NUM_THREADS=1 '" PARSIMONY_TORCH_PYTHON "' '") +
                              kExporter + "' '" + script_path + "' '" + path + "' " + dims + " >'" +
                              log + "' 2>&1";
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kNoTorch || code == kNoProgram) return "";
  if (code != 0) throw std::runtime_error(read_file(log));
  return path;
}

}  // namespace parsimony::test
