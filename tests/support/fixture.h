// The text fixtures of tests/operators/: a small model in the notation of OnnxParser and, below a
// line "---", the groups and constraints that the analysis finds in it. Described in
// tests/README.md.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace parsimony::test {

struct Fixture {
  std::string name;
  onnx::ModelProto model;
  std::string expected;  ///< what stands below the line "---"
  std::vector<std::string> inputs;
  std::string granularity = "channel";
  bool onnxruntime = true;  ///< ONNX Runtime runs the model
  bool libonnx = true;      ///< libonnx infers its shapes
};

/// @throws std::runtime_error naming file and line
Fixture read_fixture(const std::filesystem::path& path);

/// Writes the fixture's file again with `expected` below its line "---".
void update_fixture(const Fixture& fixture, const std::string& expected);

/// Every fixture, by name. The environment variable PARSIMONY_FIXTURE selects one.
const std::vector<Fixture>& all_fixtures();

/// A model in the notation of OnnxParser; the header is IR 8, opset 13 if `text` has none.
onnx::ModelProto model_of(const std::string& text);

/// Adds an initializer "8x3x3x3" of seeded numbers between -1 and 1, in raw_data.
void add_weight(onnx::ModelProto& model, const std::string& name, const std::string& dims,
                const std::string& type = "float", const std::string& kind = "");

}  // namespace parsimony::test
