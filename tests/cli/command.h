// Runs the real command in a folder that goes away.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/fixture.h"

namespace parsimony::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

/// A folder with two models: `cnn.onnx` (Conv c1 → Relu → Conv c2 → GlobalAveragePool → Gemm fc)
/// and `whole.onnx`, of which nothing can shrink.
class Workplace {
 public:
  Workplace();

  std::string operator/(const std::string& name) const { return folder_ / name; }

  /// Runs `parsimony ARGUMENTS` in the folder. Variables that are empty are unset.
  Outcome run(const std::string& arguments,
              const std::map<std::string, std::string>& environment = {}) const;
  /// Runs a line of shell in the folder, with `parsimony` on its PATH.
  Outcome shell(const std::string& line,
                const std::map<std::string, std::string>& environment = {}) const;

  bool has(const std::string& name) const;
  std::string bytes(const std::string& name) const;
  void write(const std::string& name, const std::string& bytes) const;

  /// What lies in the folder besides the two models.
  std::vector<std::string> results() const;

 private:
  TemporaryFolder folder_;
};

/// Runs the command lines of `tests/cli/messages/NAME.txt`, "$ parsimony …" each, and compares
/// their exit codes and what they print with the lines that follow. They write no files.
/// PARSIMONY_UPDATE_FIXTURES=1 writes the golden file again.
void expect_messages(const std::string& name, const Workplace& place,
                     const std::map<std::string, std::string>& environment = {});

/// Is the command's libtorch component built?
inline constexpr bool kHasTorch = PARSIMONY_HAS_TORCH != 0;

/// The model of the demo, in the source tree.
std::string mnist();

/// Two convolutions around `between`, a node of the domain "acme" that reads a and makes b; the
/// first has `channels`. Images are of `size`.
onnx::ModelProto two_convolutions(const std::string& between, const std::string& channels = "8",
                                  const std::string& size = "8");

/// Is there a library of ONNX Runtime?
bool has_onnx_runtime();
/// Its path; empty if there is none.
std::string onnx_runtime();

void save(const onnx::ModelProto& model, const std::string& path);

/// The lines of `text` that begin like this.
std::string lines_with(const std::string& text, const std::string& beginning);

}  // namespace parsimony::test
