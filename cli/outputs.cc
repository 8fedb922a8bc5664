#include "parsimony/cli/outputs.h"

#include <filesystem>
#include <system_error>

#include "parsimony/base/files.h"
#include "parsimony/cli/errors.h"

namespace parsimony::cli {
namespace {

namespace fs = std::filesystem;

bool is_same(const NamedFile& a, const NamedFile& b) {
  if (a.path.empty() || b.path.empty()) return false;
  std::error_code error;
  if (fs::equivalent(a.path, b.path, error) && !error) return true;
  const fs::path first = fs::weakly_canonical(a.path, error);
  const fs::path second = fs::weakly_canonical(b.path, error);
  return !error && first == second;
}

void check_writable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  // A rename would replace a device by a file.
  if (fs::exists(status) && !fs::is_regular_file(status)) throw errors::not_a_file(path);
  const NewFile probe(path);
}

}  // namespace

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    for (size_t j = 0; j < i; ++j) {
      if (is_same(outputs[i], outputs[j])) {
        throw errors::same_file(outputs[i].path, outputs[j].option, outputs[i].option);
      }
    }
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (i == 0 && j == 0) continue;
      if (is_same(outputs[i], inputs[j])) {
        throw errors::same_file(outputs[i].path, inputs[j].option, outputs[i].option);
      }
    }
    check_writable(outputs[i].path);
  }
}

void check_outputs_beside(const std::vector<NamedFile>& outputs, const EditableFile& model) {
  std::vector<NamedFile> inputs = {{}};
  for (const std::string& path : model.data_files()) {
    inputs.push_back({"the model's external data", path});
  }
  check_outputs(outputs, inputs);
}

}  // namespace parsimony::cli
